"""From rows to the numbers of a panel: values by place and seed, their mean and standard deviation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wrssl.experiments.cell import EVERYWHERE, Label, read_labels
from wrssl.experiments.experiment import TIME, WEIGHT, Panel

Row = Mapping[str, str]
Spot = tuple[str, str]  # curve and column
Protocol = tuple[str, int]  # budget and steps


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
    """The protocols that a panel has rows of: the paper's budget first, then by falling steps."""
    found = {_protocol(row, panel, label) for row in rows for label in _labels(row, panel)}
    return sorted(found, key=lambda each: (each[0] != "paper", -each[1]))


def values(rows: Sequence[Row], panel: Panel, protocol: Protocol) -> dict[Spot, dict[int, float]]:
    """The values of a panel by curve and column, and by seed.

    What does not depend on the columns stands in each of them. Times are divided by that of the base with equal seed.
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
    """Differences of the seeds that both have."""
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
