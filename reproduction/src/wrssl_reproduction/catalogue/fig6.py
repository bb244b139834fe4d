"""Figure 6: weight curves, size of the validation set, ablations, accuracy against J and P."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wrssl_reproduction.budget import Budget
from wrssl_reproduction.catalogue.cells import DEFAULT, PAPERS, REFERENCES, controls, make_cell
from wrssl_reproduction.catalogue.fig5 import STEPS_AHEAD, TERMS
from wrssl_reproduction.cell import EVERYWHERE, Cell, Label
from wrssl_reproduction.experiment import BELOW, NOT_HURT, WEIGHT, Claim, Experiment, Panel

SIZES = (25, 50, 100, 500, 1000, 2000, 5000)
SIZED = {PAPERS: "wr-cluster", DEFAULT: "wr"}
WATCHED = {PAPERS: "wr-cluster", "DS3L": "ds3l", DEFAULT: "wr"}
ABLATIONS: dict[str, dict[str, Any]] = {
    "all of it": {"weights": "wr-cluster"},
    "−WBN": {"weights": "wr-cluster", "bn": "batch"},
    "−CRW": {"weights": "wr-instance"},
    "−L1": {"weights": "wr-cluster", "l1": 0.0},
    "−both": {"weights": "wr-instance", "l1": 0.0},
}
METHODS = {"vat": "VAT", "pl": "PL"}


def _cells(budget: Budget) -> Iterator[Cell]:
    for seed in range(budget.seeds):
        for curve, weights in WATCHED.items():
            labels = [Label("weights", curve, group) for group in ("ID", "OOD")]
            keeps = ("weights",) if seed == 0 else ()
            yield make_cell(
                budget, "mnist", seed, *labels, method="vat", ood="fashion", weights=weights, keeps=keeps
            )  # fmt: skip
        yield from _sizes(budget, seed)
        for method, column in METHODS.items():
            yield from controls(budget, "mnist", seed, "ablation", column)
            yield from _references(budget, seed, "fashion", method, "ablation", column)
            for curve, settings in ABLATIONS.items():
                label = Label("ablation", curve, column)
                yield make_cell(budget, "mnist", seed, label, method=method, ood="fashion", **settings)
        yield from _depths(budget, seed)


def _depths(budget: Budget, seed: int) -> Iterator[Cell]:
    for panel, values in (("J", STEPS_AHEAD), ("P", TERMS)):
        yield from controls(budget, "mnist", seed, panel)
        yield from _references(budget, seed, "fashion", "vat", panel, EVERYWHERE)
        for value in values:
            label, settings = Label(panel, PAPERS, str(value)), dict[str, Any]({panel: value})
            yield make_cell(budget, "mnist", seed, label, method="vat", ood="fashion", weights="wr-cluster", **settings)


def _sizes(budget: Budget, seed: int) -> Iterator[Cell]:
    yield from controls(budget, "mnist", seed, "sizes")
    yield from _references(budget, seed, "mean", "vat", "sizes", EVERYWHERE)
    for size in SIZES:
        for curve, weights in SIZED.items():
            label = Label("sizes", curve, str(size))
            yield make_cell(
                budget, "mnist", seed, label, method="vat", ood="mean", weights=weights, n_validation=size
            )  # fmt: skip


def _references(budget: Budget, seed: int, ood: str, method: str, panel: str, column: str) -> Iterator[Cell]:
    for curve, settings in REFERENCES.items():
        yield make_cell(budget, "mnist", seed, Label(panel, curve, column), method=method, ood=ood, **settings)


def _claims() -> Iterator[Claim]:
    apart = "Mean weight of foreign minus own images at the end"
    yield Claim(
        f"{apart}, {PAPERS}", "near −1", Label("weights", PAPERS, "OOD"), Label("weights", PAPERS, "ID"), (-1, -0.8)
    )
    yield Claim(
        f"{apart}, DS3L", "nearer to 0", Label("weights", "DS3L", "OOD"), Label("weights", "DS3L", "ID"), (-0.8, 0)
    )
    for curve in SIZED:
        yield Claim(
            f"25 validation images are nearly as good as 5,000, {curve}", "stable", Label("sizes", curve, "25"),
            Label("sizes", curve, "5000"), NOT_HURT,
        )  # fmt: skip
    for method in METHODS.values():
        for curve in list(ABLATIONS)[1:]:
            text = f"{curve} costs accuracy, {method}"
            yield Claim(
                text, "below 0", Label("ablation", curve, method), Label("ablation", "all of it", method), BELOW
            )
    for name, values in (("J", STEPS_AHEAD), ("P", TERMS)):
        least, most = str(values[0]), str(values[-1])
        text = f"Accuracy grows with {name}: {most} against {least}"
        yield Claim(text, "above 0", Label(name, PAPERS, most), Label(name, PAPERS, least))


EXPERIMENT = Experiment(
    "fig6",
    "Weights over time, size of the validation set, ablations, J and P",
    _cells,
    (
        Panel("weights", "MNIST + 50 % Fashion-MNIST, VAT", ("ID", "OOD"), "mean weight at the end", WEIGHT, "traces"),
        Panel("sizes", "MNIST + 50 % Mean-MNIST, VAT", tuple(map(str, SIZES)), "validation images"),
        Panel("ablation", "MNIST + 50 % Fashion-MNIST", tuple(METHODS.values()), "base method", kind="bars"),
        Panel("J", "MNIST + 50 % Fashion-MNIST, VAT, P = 5", tuple(map(str, STEPS_AHEAD)), "look-ahead steps J"),
        Panel("P", "MNIST + 50 % Fashion-MNIST, VAT, J = 3", tuple(map(str, TERMS)), "terms P of the series"),
    ),
    claims=tuple(_claims()),
    notes=(
        "−WBN: plain batch norm. −CRW: a weight per image, with L1. −L1: clusters, without L1. −both: a weight per "
        "image, without L1.",
        "In the panel of sizes, the controls have the validation set of the budget.",
        "The paper's L1 strength of 1e-7 is below the resolution of a float32 weight near 1.",
    ),
)
EXPERIMENTS = (EXPERIMENT,)
