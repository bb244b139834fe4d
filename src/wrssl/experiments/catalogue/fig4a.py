"""Figure 4a: MNIST with Fashion-MNIST in the pool, VAT, with batch norm."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wrssl.experiments.budget import Budget
from wrssl.experiments.catalogue.cells import PAPERS, PLAIN
from wrssl.experiments.catalogue.ratios import AXIS, COLUMNS, ERROR_NOTE, NOTES, claims, driven_by_error, sweep
from wrssl.experiments.cell import Cell, Label
from wrssl.experiments.experiment import Claim, Experiment, Panel


def _cells(budget: Budget) -> Iterator[Cell]:
    yield from sweep(budget, "fashion", "mnist", "fashion", "vat")
    yield from driven_by_error(budget, "fashion", "fashion", "vat")


EXPERIMENT = Experiment(
    "fig4a",
    "MNIST with Fashion-MNIST in the pool: VAT with batch norm",
    _cells,
    (Panel("fashion", "MNIST + Fashion-MNIST, LeNet with BN (own: WBN), VAT", COLUMNS, AXIS),),
    claims=(
        Claim(
            "At 50 % the paper's method is better than plain VAT",
            "almost 18 points",
            Label("fashion", PAPERS, "50"),
            Label("fashion", PLAIN, "50"),
            (16.0, math.inf),
        ),
        *claims("fashion"),
    ),
    notes=(*NOTES, ERROR_NOTE),
)
