"""Table I: SVHN with the digits 5–9 as foreign images, VAT."""

from __future__ import annotations

from collections.abc import Iterator

from wrssl.experiments.budget import Budget
from wrssl.experiments.catalogue.cells import PAPERS, PLAIN
from wrssl.experiments.catalogue.ratios import AXIS, NOTES, RIVALS, WEIGHTINGS, claims, sweep
from wrssl.experiments.cell import Cell, Label
from wrssl.experiments.claims import beats
from wrssl.experiments.experiment import Experiment, Panel

WITHOUT = f"{PAPERS} without CRW"
RATIOS = (0.25, 0.5, 0.75)
PRINTED = {
    PLAIN: ((94.1, 0.5), (93.6, 0.7), (92.8, 0.9)),
    "L2RW": ((96.0, 0.6), (93.5, 0.8), (92.7, 0.8)),
    "MWN": ((96.2, 0.5), (93.8, 1.1), (93.0, 1.3)),
    "UASD": ((96.3, 0.5), (94.2, 0.9), (93.3, 1.3)),
    "DS3L": ((96.4, 0.7), (93.9, 1.0), (92.9, 1.2)),
    WITHOUT: ((96.6, 0.6), (94.4, 0.8), (93.2, 1.1)),
    PAPERS: ((96.8, 0.7), (95.2, 0.9), (94.9, 1.3)),
}


def _cells(budget: Budget) -> Iterator[Cell]:
    weightings = {**WEIGHTINGS, WITHOUT: "wr-instance"}
    return sweep(
        budget, "svhn", "svhn", "classes", "vat", weightings=weightings, ratios=RATIOS, bn="frozen"
    )  # fmt: skip


EXPERIMENT = Experiment(
    "table-svhn",
    "SVHN with the digits 5–9 as foreign images: VAT",
    _cells,
    (Panel("svhn", "SVHN 5/5, frozen BN, VAT", ("25", "50", "75", "50 added"), AXIS),),
    printed={
        Label("svhn", curve, column): value
        for curve, values in PRINTED.items()
        for column, value in zip(("25", "50", "75"), values, strict=True)
    },
    claims=(
        *claims("svhn", ratios=RATIOS),
        *beats("svhn", "50", WITHOUT, RIVALS, "At 50 %", "above 0"),
    ),
    source="The paper's table SVHN-Extra with different OOD ratio.",
    notes=(
        *NOTES[1:],
        "The pool comes from `extra_32x32.mat` where that file is there (the paper), and from the training file "
        "otherwise.",
        "The paper's text says that batch norm is frozen for all methods on SVHN.",
    ),
)
