"""Figure 2: how foreign data hurt, with, without and with frozen batch norm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wrssl.experiments.budget import Budget
from wrssl.experiments.catalogue.cells import CLEAN, DEFAULT, ORACLE, controls, make_cell
from wrssl.experiments.cell import Cell, Label
from wrssl.experiments.experiment import Claim, Experiment, Panel

BN, NBN, FBN, OURS = "SSL-BN", "SSL-NBN", "SSL-FBN", "WR-SSL"
SKYLINE, SKYLINE_NBN = f"skyline ({CLEAN}, BN)", f"skyline without BN ({CLEAN})"
CURVES: dict[str, dict[str, Any]] = {
    BN: {},
    NBN: {"batch_norm": False},
    FBN: {"bn": "frozen"},
    OURS: {"weights": "wr-cluster"},
    SKYLINE: {"clean": True},
    SKYLINE_NBN: {"clean": True, "batch_norm": False},
    DEFAULT: {"weights": "wr"},
    ORACLE: {"weights": "oracle"},
}
ADDED = (BN, NBN, SKYLINE, SKYLINE_NBN)
POOLS = {
    "moons": ("faraway", "boundary", "mixed"),
    "mnist": ("fashion", "emnist", "mean", "mixed"),
    "cifar10": ("classes",),
}
PICTURED = (BN, NBN, FBN, OURS, SKYLINE)


def _cells(budget: Budget) -> Iterator[Cell]:
    for seed in range(budget.seeds):
        for dataset, pools in POOLS.items():
            yield from controls(budget, dataset, seed, dataset)
            for ood in pools:
                for curve, settings in CURVES.items():
                    keeps = ("model",) if dataset == "moons" and seed == 0 and curve in PICTURED else ()
                    label = Label(dataset, curve, ood)
                    yield make_cell(budget, dataset, seed, label, method="vat", ood=ood, keeps=keeps, **settings)
                for curve in ADDED if dataset != "cifar10" else (BN, SKYLINE):
                    label = Label(dataset, f"{curve}, added", ood)
                    settings = CURVES[curve]
                    yield make_cell(budget, dataset, seed, label, method="vat", ood=ood, mode="add", **settings)


def _hurts(text: str, printed: str, dataset: str, ood: str, curve: str, skyline: str) -> Claim:
    return Claim(text, printed, Label(dataset, curve, ood), Label(dataset, skyline, ood))


TAKEAWAYS = tuple(
    claim
    for dataset, near, far in (("mnist", ("emnist", "mean"), "fashion"), ("moons", ("boundary",), "faraway"))
    for claim in (
        *(
            _hurts(f"1. Boundary foreign data ({dataset}, {ood}) hurt {words} BN", "below 0", dataset, ood, curve, sky)
            for ood in near
            for words, curve, sky in (("with", BN, SKYLINE), ("without", NBN, SKYLINE_NBN))
        ),
        _hurts(f"2. Faraway foreign data ({dataset}, {far}) hurt with BN", "below 0", dataset, far, BN, SKYLINE),
        _hurts(f"2. Freezing BN helps ({dataset}, {far})", "above 0", dataset, far, FBN, BN),
        _hurts(f"2. but not entirely ({dataset}, {far})", "below 0", dataset, far, FBN, SKYLINE),
        _hurts(f"3. Faraway ones ({dataset}, {far}) do not hurt without BN", "about 0", dataset, far, NBN, SKYLINE_NBN),
    )
)
EXPERIMENT = Experiment(
    "fig2",
    "How foreign data hurt: with, without and with frozen batch norm (VAT, 50 %)",
    _cells,
    (
        Panel("moons", "two moons, MLP", POOLS["moons"], "foreign points", kind="bars"),
        Panel("mnist", "MNIST, LeNet", POOLS["mnist"], "foreign images", kind="bars"),
        Panel("cifar10", "CIFAR-10 6/4", POOLS["cifar10"], "foreign images", kind="bars"),
    ),
    claims=TAKEAWAYS,
    notes=(
        "SSL-BN, SSL-NBN, SSL-FBN: plain VAT with, without and with frozen batch norm. A skyline has the foreign data "
        "taken out by hand.",
        '`added`: the foreign data are added to a quarter of the own ones (`mode="add"`) instead of replacing them.',
        "What does not depend on the pool stands in every column.",
    ),
)
