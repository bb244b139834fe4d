"""Two things timed in turns, A, B, A, B, …, so that a busy minute of the machine slows both."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Action = Callable[[], object]


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

    Calls of one kind stand together because that is how they run in life: two trainings that take turns step by step
    would throw each other's data out of the caches.

    Args:
        a: the one whose cost is asked for.
        b: what it is compared with.
        blocks: number of pairs.
        length: calls of each that are averaged to one entry of a pair; a multiple of L where every L-th step is dearer.
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
