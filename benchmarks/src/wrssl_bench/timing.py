"""Two things timed in turns, A, B, A, B, …, so that a busy minute of the machine slows both; how often, and where."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from wrssl.errors import WRSSLError

Action = Callable[[], object]


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
        pictures: in memory, that are embedded.
        photos: files of a whole run.
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
    pictures: int = 200
    photos: int = 2_000

    def times(self, count: int) -> int:
        """That share of ``count`` repetitions, at least two, so that there is a spread."""
        return max(2, round(count * self.share))


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes:
        median: for a ratio, that of the two medians.
        spread: the interquartile range of what was measured again and again; for a ratio, of the ratios of the pairs.
        details: further numbers for the JSON.
    """

    median: float
    spread: float
    details: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Pairs:
    """Seconds of A and of B, the i-th of each measured together."""

    a: list[float]
    b: list[float]

    def ratio(self) -> float:
        """The ratio of the medians."""
        return statistics.median(self.a) / statistics.median(self.b)

    def ratios(self) -> list[float]:
        """The ratio of each pair."""
        return [one / other for one, other in zip(self.a, self.b, strict=True)]

    def figure(self) -> Figure:
        """The ratio with its spread; the medians in milliseconds are beside it."""
        medians = {"ms": 1e3 * statistics.median(self.a), "base_ms": 1e3 * statistics.median(self.b)}
        return Figure(self.ratio(), quartile_range(self.ratios()), {**medians, "pairs": len(self.a)})


def interleave(
    a: Action, b: Action, blocks: int, length: int = 1, warmup: int = 0, clock: Callable[[], float] = time.perf_counter
) -> Pairs:
    """Time two actions in turns: ``length`` calls of the one, then as many of the other.

    Calls of one kind are made together, as in a real run: two trainings that take turns step by step would evict each
    other's data from the caches.

    Args:
        a: the one whose cost is wanted.
        b: what it is compared with.
        blocks: number of pairs.
        length: calls of each that are averaged to one entry of a pair; a multiple of L where every L-th costs more.
        warmup: calls of each before the clock counts.
        clock: in seconds.
    """
    for _ in range(warmup):
        a(), b()
    pairs = Pairs([], [])
    for _ in range(blocks):
        for action, entries in ((a, pairs.a), (b, pairs.b)):
            start = clock()
            for _ in range(length):
                action()
            entries.append((clock() - start) / length)
    return pairs


def quartile_range(values: Sequence[float]) -> float:
    """The third quartile minus the first; 0 of a single value."""
    if len(values) < 2:
        return 0.0
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return third - first


def summary(values: Sequence[float]) -> Figure:
    """Median and interquartile range of a number that was measured several times."""
    return Figure(statistics.median(values), quartile_range(values), {"runs": len(values)})


def geometric_mean(values: Sequence[float]) -> float:
    """The exponential of the mean logarithm: a ratio and its inverse cancel."""
    return math.exp(statistics.fmean(map(math.log, values)))


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Within this torch uses so many threads; afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def output_of(*arguments: str) -> str:
    """What this Python prints when it is called with these arguments, on one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise WRSSLError(f"A measuring process ended with code {done.returncode} and said: {last}")
    return done.stdout
