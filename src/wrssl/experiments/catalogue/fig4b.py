"""Figure 4b: MNIST with mean images in the pool, Pseudo-Label, without batch norm."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wrssl.experiments.budget import Budget
from wrssl.experiments.catalogue.cells import CLEAN, DEFAULT, ORACLE, PAPERS, PLAIN, controls, make_cell
from wrssl.experiments.catalogue.ratios import (
    AXIS,
    COLUMNS,
    ERROR_NOTE,
    NOTES,
    WEIGHTINGS,
    claims,
    driven_by_error,
    sweep,
)
from wrssl.experiments.cell import Cell, Label
from wrssl.experiments.experiment import Claim, Experiment, Panel

FAST = 3e-3  # ten times the paper's learning rate: is it the optimiser that holds Pseudo-Label back?


def _cells(budget: Budget) -> Iterator[Cell]:
    yield from sweep(budget, "mean", "mnist", "mean", "pl", batch_norm=False)
    yield from driven_by_error(budget, "mean", "mean", "pl", batch_norm=False)
    for seed in range(budget.seeds):
        yield from controls(budget, "mnist", seed, "rate", "50", batch_norm=False)
        for curve in (PLAIN, PAPERS, DEFAULT, ORACLE, CLEAN):
            yield make_cell(
                budget, "mnist", seed, Label("rate", curve, "50"), method="pl", ood="mean",
                weights=WEIGHTINGS.get(curve, "none"), clean=curve == CLEAN, batch_norm=False, lr=FAST,
            )  # fmt: skip


EXPERIMENT = Experiment(
    "fig4b",
    "MNIST with mean images in the pool: Pseudo-Label without batch norm",
    _cells,
    (
        Panel("mean", "MNIST + Mean-MNIST, LeNet without BN, PL (learning rate 3e-4)", COLUMNS, AXIS),
        Panel("rate", "the same with learning rate 3e-3", ("50",), AXIS, kind="bars"),
    ),
    claims=(
        Claim(
            "At 50 % the paper's method is better than DS3L",
            "8 points",
            Label("mean", PAPERS, "50"),
            Label("mean", "DS3L", "50"),
            (7.0, math.inf),
        ),
        *claims("mean"),
    ),
    notes=(*NOTES, ERROR_NOTE, "The paper's learning rate for Pseudo-Label is 3e-4."),
)
