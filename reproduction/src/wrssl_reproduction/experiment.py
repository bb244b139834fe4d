"""What an experiment is: cells to run, panels to show them in, the paper's printed numbers, its claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wrssl_reproduction.budget import PAPER, Budget
from wrssl_reproduction.cell import Cell, Label, merged

ACCURACY, TIME, WEIGHT = "accuracy", "time", "weight"
ABOVE, BELOW = (0.0, math.inf), (-math.inf, 0.0)
NOT_HURT = (-1.0, math.inf)  # a loss of less than a point counts as no loss


@dataclass(frozen=True)
class Panel:
    """One table, and one part of the figure.

    Attributes:
        key: the panel's name in labels.
        title: in words.
        columns: of the table, in order; those that are numbers are the x axis of a line plot.
        axis: what the columns are, with the unit.
        value: ``"accuracy"`` (of the test set, in percent), ``"time"`` (of a step, relative to ``base``) or
            ``"weight"`` (the mean weight of a group at the end of training; columns ``"ID"`` and ``"OOD"``).
        kind: ``"lines"``, ``"bars"`` or ``"traces"`` (curves over the training steps).
        base: the curve (and column) whose step time is 1.
        longer: columns whose runs make so many times the steps of the others.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    axis: str
    value: str = ACCURACY
    kind: str = "lines"
    base: tuple[str, str] | None = None
    longer: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper with a number, and where its number is to be found here.

    Attributes:
        text: what the paper says, in our words.
        printed: its number, as printed.
        better: the first of two places.
        worse: the second; the claim is about ``better − worse`` in points, paired by seed, or about the value at
            ``better`` where this is None.
        range: the lowest and the highest value with which the sentence would be true.
    """

    text: str
    printed: str
    better: Label
    worse: Label | None = None
    range: tuple[float, float] = ABOVE


@dataclass(frozen=True)
class Experiment:
    """An entry of the catalogue.

    Attributes:
        name: as in ``wrssl reproduce NAME``.
        title: in words.
        make: the cells of a budget, with labels; a run may occur several times.
        panels: in the order in which they are shown.
        printed: the paper's numbers by place, as (mean, standard deviation) in percent.
        source: where in the paper the printed numbers stand.
        claims: what the paper says about it.
        notes: sentences that a reader of the table needs.
        finish: draws further pictures from the rows and the folder of the results.
    """

    name: str
    title: str
    make: Callable[[Budget], Iterable[Cell]]
    panels: tuple[Panel, ...]
    printed: Mapping[Label, tuple[float, float]] = field(default_factory=dict)
    source: str = "The paper shows this as a plot whose values are not printed."
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    finish: Callable[[Sequence[Mapping[str, str]], Path], None] | None = None

    def cells(self, budget: Budget) -> list[Cell]:
        """Every run once."""
        return merged(self.make(budget))

    def panel(self, key: str) -> Panel:
        """The panel of this name."""
        return next(panel for panel in self.panels if panel.key == key)

    def curves(self, panel: str, there: Iterable[str]) -> list[str]:
        """These curves in the order of the catalogue; curves that only older rows have come last."""
        cells = self.make(PAPER.changed(seeds=1, steps=None))
        named = dict.fromkeys(label.curve for cell in cells for label in cell.labels if label.panel == panel)
        present = set(there)
        return [curve for curve in named if curve in present] + sorted(present - named.keys())


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
