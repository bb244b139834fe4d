"""Figure 5: the time of a step relative to the base method, against J and P, and last layer × L with accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wrssl_reproduction.budget import Budget
from wrssl_reproduction.catalogue.cells import DEFAULT, PAPERS, PLAIN, REFERENCES, WITHOUT, controls, make_cell
from wrssl_reproduction.cell import EVERYWHERE, Cell, Label
from wrssl_reproduction.experiment import NOT_HURT, TIME, Claim, Experiment, Panel

DATA = {"mnist": "fashion", "cifar10": "classes"}
METHODS = {
    PLAIN: "none", "UASD": "uasd", "DS3L": "ds3l", "L2RW": "l2rw", "MWN": "mwn", WITHOUT: "wr-instance",
    PAPERS: "wr-cluster", DEFAULT: "wr",
}  # fmt: skip
SCOPES = {"last layer": "head", "whole network": "network"}
EVERY = (1, 5, 20)
STEPS_AHEAD, TERMS = (1, 3, 5, 10), (0, 5, 10, 20)
TIMED = 200  # steps of a run that is only timed: more of them take no other time


def _cell(budget: Budget, dataset: str, seed: int, *labels: Label, **settings: Any) -> Cell:
    return make_cell(budget, dataset, seed, *labels, method="vat", ood=DATA[dataset], **settings)


def _cells(budget: Budget) -> Iterator[Cell]:
    for seed in range(budget.seeds):
        for dataset in DATA:
            yield from _times(budget, dataset, seed)
            yield from _accuracies(budget, dataset, seed)


def _times(budget: Budget, dataset: str, seed: int) -> Iterator[Cell]:
    """Short runs: all methods, last layer × L, and J and P on MNIST."""
    varied: dict[str, tuple[str, tuple[int, ...]]] = {f"L-{dataset}": ("L", EVERY)}  # panel: what is varied, and values
    if dataset == "mnist":
        varied |= {"J": ("J", STEPS_AHEAD), "P": ("P", TERMS)}
    for curve, weights in METHODS.items():
        places = [Label(f"time-{dataset}", curve, "step")]
        if curve == PLAIN:  # what the others are compared with
            places += [Label(panel, PLAIN, EVERYWHERE) for panel in varied]
        yield _cell(budget, dataset, seed, *places, weights=weights, at_most=TIMED, alone=True)
    for words, scope in SCOPES.items():
        for panel, (name, values) in varied.items():
            for value in values:
                settings: dict[str, Any] = {"weights": "wr-cluster", "scope": scope, name: value, "alone": True}
                yield _cell(budget, dataset, seed, Label(panel, words, str(value)), at_most=TIMED, **settings)


def _accuracies(budget: Budget, dataset: str, seed: int) -> Iterator[Cell]:
    """What last layer × L cost in accuracy, and the controls."""
    panel = f"accuracy-{dataset}"
    yield from controls(budget, dataset, seed, panel)
    for curve, settings in REFERENCES.items():
        yield _cell(budget, dataset, seed, Label(panel, curve, EVERYWHERE), **settings)
    for words, scope in SCOPES.items():
        for L in EVERY:
            yield _cell(budget, dataset, seed, Label(panel, words, str(L)), weights="wr-cluster", scope=scope, L=L)


def _panels() -> Iterator[Panel]:
    words = {"mnist": "MNIST + Fashion-MNIST", "cifar10": "CIFAR-10 6/4"}
    step = "time of a step relative to plain SSL"
    for dataset, name in words.items():
        yield Panel(f"time-{dataset}", f"{name}, VAT", ("step",), step, TIME, "bars", (PLAIN, "step"))
    yield Panel("J", "MNIST: look-ahead steps (P = 5)", tuple(map(str, STEPS_AHEAD)), "J", TIME, base=(PLAIN, "1"))
    yield Panel("P", "MNIST: terms of the series (J = 3)", tuple(map(str, TERMS)), "P", TIME, base=(PLAIN, "0"))
    for dataset, name in words.items():
        columns, axis = tuple(map(str, EVERY)), "steps L between two weight updates"
        yield Panel(f"L-{dataset}", f"{name}: time", columns, axis, TIME, base=(PLAIN, "1"))
        yield Panel(f"accuracy-{dataset}", f"{name}: accuracy", columns, axis)


EXPERIMENT = Experiment(
    "fig5",
    "Running time relative to the base method (VAT, 50 % foreign images)",
    _cells,
    tuple(_panels()),
    claims=(
        Claim(
            "The paper's method, L = 5, last layer (MNIST)",
            "1.7 to 1.8 ×",
            Label("time-mnist", PAPERS, "step"),
            range=(1.65, 1.85),
        ),
        Claim(
            "The paper's method, L = 5, last layer (CIFAR)",
            "1.7 to 1.8 ×",
            Label("time-cifar10", PAPERS, "step"),
            range=(1.65, 1.85),
        ),
        Claim("L2RW (MNIST)", "almost 3 ×", Label("time-mnist", "L2RW", "step"), range=(2.5, 3.5)),
        Claim("DS3L (MNIST)", "almost 3 ×", Label("time-mnist", "DS3L", "step"), range=(2.5, 3.5)),
        Claim("Last layer only, L = 1 (MNIST)", "around 2 ×", Label("L-mnist", "last layer", "1"), range=(1.8, 2.2)),
        Claim("Neither last layer nor L > 1 (MNIST)", "3 ×", Label("L-mnist", "whole network", "1"), range=(2.5, 3.5)),
        *(
            Claim(
                f"Time grows with {name} (MNIST, whole network)",
                "above 0",
                Label(name, "whole network", most),
                Label(name, "whole network", least),
            )
            for name, least, most in (("J", "1", "10"), ("P", "0", "20"))
        ),
        Claim(
            "L = 5 and the last layer alone lose little accuracy (MNIST)",
            "comparable",
            Label("accuracy-mnist", "last layer", "5"),
            Label("accuracy-mnist", "whole network", "1"),
            NOT_HURT,
        ),
    ),
    notes=(
        "Times are means over the steps of a run, divided by that of plain SSL with the same seed: a median would hide "
        "what happens in every fifth or twentieth step only. Timed runs are made one after the other, with no other "
        "run at the same time; they are exact only where nothing else runs on the machine either.",
        f"A run that is only timed makes at most {TIMED} steps.",
    ),
)
EXPERIMENTS = (EXPERIMENT,)
