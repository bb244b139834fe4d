"""From rows to the numbers of a panel, and whether the rows support what the paper says.

A claim is true where a mean μ lies within a range: a difference between two places of a panel, paired by seed, or the
value at one place. Of n seeds with mean m and standard deviation s, μ lies with 95 % confidence in

    m ± t s / √n,    t the 0.975 quantile of Student's distribution with n − 1 degrees of freedom.

The claim holds where the whole interval is within the range, does not hold where all of it is outside, and is undecided
otherwise. Fewer than three seeds decide nothing: accuracies are counts of images, and two differences between counts
are at times equal by chance, with a spread of zero that says nothing about the next seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wrssl_reproduction.cell import EVERYWHERE, Label, read_labels
from wrssl_reproduction.experiment import TIME, WEIGHT, Claim, Experiment, Panel

Row = Mapping[str, str]
Spot = tuple[str, str]  # curve and column
Protocol = tuple[str, int]  # budget and steps
CONFIDENCE = 0.95
FEWEST = 3  # seeds that can decide
HOLDS, FAILS, UNDECIDED, UNTESTED = "holds", "does not hold", "undecided", "untested"


@dataclass(frozen=True)
class Stat:
    """Mean, sample standard deviation (None for one value) and number of values."""

    mean: float
    std: float | None
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Stat:
        """Of at least one value."""
        found = np.fromiter(values, dtype=np.float64)
        return cls(float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else None, len(found))

    @property
    def error(self) -> float | None:
        """The standard error of the mean."""
        return None if self.std is None else self.std / math.sqrt(self.n)


def protocols(rows: Sequence[Row], panel: Panel) -> list[Protocol]:
    """The protocols of a panel's rows: the paper's budget first, then by falling steps."""
    found = {_protocol(row, panel, label) for row in rows for label in _labels(row, panel)}
    return sorted(found, key=lambda each: (each[0] != "paper", -each[1]))


def values(rows: Sequence[Row], panel: Panel, protocol: Protocol) -> dict[Spot, dict[int, float]]:
    """The values of a panel by curve and column, and by seed.

    A run that does not depend on the columns stands in each of them. Times are divided by that of the base with equal
    seed.
    """
    found: dict[Spot, dict[int, float]] = {}
    for row in rows:
        for label in _labels(row, panel):
            if _protocol(row, panel, label) != protocol:
                continue
            for column in panel.columns if label.column == EVERYWHERE else (label.column,):
                value = _value(row, panel, column)
                if value is not None:
                    found.setdefault((label.curve, column), {})[int(row["seed"])] = value
    return _relative(found, panel) if panel.value == TIME else found


def paired(better: Mapping[int, float], worse: Mapping[int, float]) -> list[float]:
    """Differences for the seeds that both have."""
    return [better[seed] - worse[seed] for seed in sorted(better.keys() & worse.keys())]


def _labels(row: Row, panel: Panel) -> list[Label]:
    return [label for label in read_labels(row["label"]) if label.panel == panel.key]


def _protocol(row: Row, panel: Panel, label: Label) -> Protocol:
    return row["budget"], int(row["steps"]) // panel.longer.get(label.column, 1)


def _value(row: Row, panel: Panel, column: str) -> float | None:
    if panel.value == TIME:
        text, scale = row["mean_seconds_per_step"] or row["seconds_per_step"], 1.0
    elif panel.value == WEIGHT:
        text, scale = row["mean_weight_id" if column == "ID" else "mean_weight_ood"], 1.0
    else:
        text, scale = row["test_accuracy"], 100.0
    return scale * float(text) if text else None


def _relative(found: dict[Spot, dict[int, float]], panel: Panel) -> dict[Spot, dict[int, float]]:
    assert panel.base is not None
    base = found.get(panel.base, {})
    ratios = {
        spot: {seed: value / base[seed] for seed, value in by_seed.items() if base.get(seed)}
        for spot, by_seed in found.items()
    }
    return {spot: by_seed for spot, by_seed in ratios.items() if by_seed}


@dataclass(frozen=True)
class Finding:
    """What the rows of one protocol say about a claim."""

    protocol: Protocol
    stat: Stat
    verdict: str


class Interval(NamedTuple):
    """A confidence interval of a mean."""

    low: float
    high: float


def interval(stat: Stat) -> Interval:
    """The confidence interval of the mean; (−∞, ∞) for one value."""
    if stat.error is None:
        return Interval(-math.inf, math.inf)
    from scipy.stats import t  # costs a second, which other commands do not need

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
