"""Table II: CIFAR-100 with its last 50 classes as foreign images, Mean Teacher and Π-Model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wrssl.experiments.budget import Budget
from wrssl.experiments.catalogue.cells import DEFAULT, ORACLE, PAPERS, PLAIN
from wrssl.experiments.catalogue.ratios import AXIS, NOTES, sweep
from wrssl.experiments.catalogue.table_svhn import RATIOS, WITHOUT
from wrssl.experiments.cell import Cell, Label
from wrssl.experiments.claims import beats
from wrssl.experiments.experiment import Experiment, Panel

WEIGHTINGS = {
    PLAIN: "none", "UASD": "uasd", "DS3L": "ds3l", WITHOUT: "wr-instance", PAPERS: "wr-cluster", DEFAULT: "wr",
    ORACLE: "oracle",
}  # fmt: skip
METHODS: dict[str, dict[str, Any]] = {"mt": {}, "pi": {"lr": 3e-4}}  # Oliver et al.'s learning rates: 4e-4 and 3e-4
PRINTED = {
    "mt": {
        "UASD": ((60.5, 0.6), (60.3, 0.7), (58.5, 1.0)),
        "DS3L": ((60.8, 0.5), (60.1, 1.1), (57.2, 1.2)),
        WITHOUT: ((61.5, 0.4), (60.7, 0.6), (59.0, 0.8)),
        PAPERS: ((62.1, 0.5), (61.0, 0.5), (59.7, 0.9)),
    },
    "pi": {
        "UASD": ((61.1, 0.5), (60.0, 0.9), (58.4, 1.0)),
        "DS3L": ((60.5, 0.6), (60.1, 1.0), (57.4, 1.3)),
        WITHOUT: ((61.2, 0.4), (60.4, 0.4), (58.9, 0.6)),
        PAPERS: ((61.6, 0.4), (60.7, 0.5), (59.5, 0.7)),
    },
}


def _cells(budget: Budget) -> Iterator[Cell]:
    for method, changes in METHODS.items():
        yield from sweep(
            budget, method, "cifar100", "classes", method, weightings=WEIGHTINGS, ratios=RATIOS, bn="frozen", **changes
        )


EXPERIMENT = Experiment(
    "table-cifar100",
    "CIFAR-100 with its last 50 classes as foreign images: Mean Teacher and Π-Model",
    _cells,
    tuple(
        Panel(method, f"CIFAR-100 50/50, frozen BN, {method.upper()}", ("25", "50", "75", "50 added"), AXIS)
        for method in METHODS
    ),
    printed={
        Label(method, curve, column): value
        for method, curves in PRINTED.items()
        for curve, values in curves.items()
        for column, value in zip(("25", "50", "75"), values, strict=True)
    },
    claims=tuple(
        claim
        for method in METHODS
        for own in (PAPERS, WITHOUT)
        for claim in beats(method, "50", own, ("UASD", "DS3L"), f"At 50 %, {method.upper()}", "above 0")
    ),
    source="The paper's table CIFAR100 with different OOD ratio.",
    notes=(*NOTES[1:], "The paper's text says that batch norm is frozen for all methods on CIFAR-100."),
)
