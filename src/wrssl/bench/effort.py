"""How much work goes into a figure, so that tests can ask for less."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """The defaults are those of ``wrssl bench``, about nine minutes on one core.

    Attributes:
        share: of the repetitions.
        warmup: calls before the clock counts; the first weight update looks for λmax from nothing.
        batch: size of each kind of batch.
        pool: images in the pool.
        updates: weight updates per pair where the whole network is differentiated: its λmax is measured anew at every
            fiftieth, so that fifty updates hold one measurement.
        stretch: steps per pair where two pools are compared: thirteen weight updates, and at least one refill of the
            data order, which is computed for 64 batches at once.
        small: members of the small pool, where two sizes are compared.
        large: members of the large one.
        steps: steps during which memory is watched.
    """

    share: float = 1.0
    warmup: int = 5
    batch: int = 100
    pool: int = 4_000
    updates: int = 50
    stretch: int = 65
    small: int = 10**4
    large: int = 10**7
    steps: int = 200

    def times(self, count: int) -> int:
        """That share of ``count`` repetitions, at least two, so that there is a spread."""
        return max(2, round(count * self.share))
