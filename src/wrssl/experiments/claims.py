"""What the paper says as data, and whether the rows bear it out.

A claim is true where a mean μ lies within a range: a difference between two places of a panel, paired by seed, or the
value at one place. Of n seeds with mean m and standard deviation s, μ lies with 95 % confidence in

    m ± t s / √n,    t the 0.975 quantile of Student's distribution with n − 1 degrees of freedom.

The claim holds where the whole interval is within the range, does not hold where all of it is outside, and is undecided
otherwise. Fewer than three seeds decide nothing: accuracies are counts of images, and two differences between counts
are at times equal by chance, with a spread of zero that says nothing about the next seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wrssl.experiments.cell import Label
from wrssl.experiments.experiment import Claim, Experiment
from wrssl.experiments.statistics import Protocol, Row, Stat, paired, protocols, values

CONFIDENCE = 0.95
FEWEST = 3  # seeds that can decide
HOLDS, FAILS, UNDECIDED, UNTESTED = "holds", "does not hold", "undecided", "untested"


@dataclass(frozen=True)
class Finding:
    """What the rows of one protocol say about a claim."""

    protocol: Protocol
    stat: Stat
    verdict: str


class Interval(NamedTuple):
    """Where a mean is believed to be."""

    low: float
    high: float


def interval(stat: Stat) -> Interval:
    """The confidence interval of the mean; everything for one value."""
    if stat.error is None:
        return Interval(-math.inf, math.inf)
    from scipy.stats import t  # a second of import that other commands need not pay

    half = float(t.ppf((1 + CONFIDENCE) / 2, stat.n - 1)) * stat.error
    return Interval(stat.mean - half, stat.mean + half)


def verdict(stat: Stat, low: float, high: float) -> str:
    """Whether a mean with this spread is within ``low`` and ``high``."""
    if stat.n < FEWEST:
        return UNDECIDED
    inside = interval(stat)
    if low <= inside.low and inside.high <= high:
        return HOLDS
    return FAILS if inside.high < low or high < inside.low else UNDECIDED


def findings(experiment: Experiment, claim: Claim, rows: Sequence[Row]) -> list[Finding]:
    """Under every protocol that has rows for the claim, the paper's budget first."""
    panel = experiment.panel(claim.better.panel)
    found = []
    for protocol in protocols(rows, panel):
        measured = _measured(claim, values(rows, panel, protocol))
        if measured:
            stat = Stat.of(measured)
            found.append(Finding(protocol, stat, verdict(stat, *claim.range)))
    return found


def _measured(claim: Claim, found: dict[tuple[str, str], dict[int, float]]) -> list[float]:
    better = found.get(claim.better[1:], {})
    return list(better.values()) if claim.worse is None else paired(better, found.get(claim.worse[1:], {}))


def beats(panel: str, column: str, curve: str, rivals: Iterable[str], words: str, printed: str) -> tuple[Claim, ...]:
    """``curve`` is better than each of ``rivals`` in one column."""
    return tuple(
        Claim(
            f"{words}: {curve} is better than {rival}",
            printed,
            Label(panel, curve, column),
            Label(panel, rival, column),
        )
        for rival in rivals
    )
