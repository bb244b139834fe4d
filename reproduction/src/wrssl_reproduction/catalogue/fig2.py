"""Figure 2: how foreign data hurt, with, without and with frozen batch norm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file

from wrssl.data import load_scenario
from wrssl.evaluate import draw_boundaries
from wrssl.models import build_model
from wrssl_reproduction.budget import Budget
from wrssl_reproduction.catalogue.cells import CLEAN, DEFAULT, ORACLE, controls, make_cell
from wrssl_reproduction.cell import Cell, Label, read_labels
from wrssl_reproduction.experiment import ABOVE, BELOW, NOT_HURT, Claim, Experiment, Panel
from wrssl_reproduction.plan import ENDINGS, KEPT
from wrssl_reproduction.statistics import Row, protocols

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
# A foreign member also takes the place of an own one in a batch; with perfect weights it does nothing else.
ORACLE_NBN = f"{ORACLE} without BN"
FAR = {"moons": "faraway", "mnist": "fashion"}
ADDED = (BN, NBN, SKYLINE, SKYLINE_NBN)
POOLS = {
    "moons": ("faraway", "boundary", "mixed"),
    "mnist": ("fashion", "emnist", "mean", "mixed"),
    "cifar10": ("classes",),
}
MOONS = Panel("moons", "two moons, MLP", POOLS["moons"], "foreign points", kind="bars")
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
                if ood == FAR.get(dataset):
                    label = Label(dataset, ORACLE_NBN, ood)
                    yield make_cell(
                        budget, dataset, seed, label, method="vat", ood=ood, weights="oracle", batch_norm=False
                    )
                for curve in ADDED if dataset != "cifar10" else (BN, SKYLINE):
                    label = Label(dataset, f"{curve}, added", ood)
                    settings = CURVES[curve]
                    yield make_cell(budget, dataset, seed, label, method="vat", ood=ood, mode="add", **settings)


def _claim(text: str, printed: str, dataset: str, better: str, worse: str, range: tuple[float, float]) -> Claim:
    """``better`` and ``worse`` are a curve and a pool each, with a bar between them."""
    first, second = (Label(dataset, *place.split("|")) for place in (better, worse))
    return Claim(f"{text} ({dataset})", printed, first, second, range)


def _takeaways(dataset: str, boundary: tuple[str, ...], far: str, near_zero: tuple[str, ...] = ()) -> Iterator[Claim]:
    """Section III of the paper, by the number of its sentence; the first four are its takeaways.

    A difference near zero never has a sure sign; whether it is as much as a point can be decided all the same.
    """
    norms = (("with", BN, SKYLINE), ("without", NBN, SKYLINE_NBN))
    for near in boundary:
        for words, curve, skyline in norms:
            text = f"1. Boundary foreign data ({near}) hurt {words} BN"
            yield _claim(text, "below 0", dataset, f"{curve}|{near}", f"{skyline}|{near}", BELOW)
            if near in near_zero and curve == NBN:
                text, printed = f"1. or cost less than a point ({near}) {words} BN", "not asked; 0 would be no harm"
                yield _claim(text, printed, dataset, f"{curve}|{near}", f"{skyline}|{near}", NOT_HURT)
    yield _claim(f"2. Faraway ones ({far}) hurt with BN", "below 0", dataset, f"{BN}|{far}", f"{SKYLINE}|{far}", BELOW)
    yield _claim(f"3. Freezing BN helps with {far}", "above 0", dataset, f"{FBN}|{far}", f"{BN}|{far}", ABOVE)
    yield _claim(f"3. but not entirely, {far}", "below 0", dataset, f"{FBN}|{far}", f"{SKYLINE}|{far}", BELOW)
    yield _claim(
        f"4. Faraway ones ({far}) do not hurt without BN", "about 0", dataset, f"{NBN}|{far}", f"{SKYLINE_NBN}|{far}",
        NOT_HURT,
    )  # fmt: skip
    text, printed = "4. beyond taking own ones' places in the batch", "not asked; 0 would be no harm"
    yield _claim(text, printed, dataset, f"{NBN}|{far}", f"{ORACLE_NBN}|{far}", NOT_HURT)
    for near in boundary:
        text = f"5. With BN faraway ones hurt more than boundary ones ({near})"
        yield _claim(text, "below 0", dataset, f"{BN}|{far}", f"{BN}|{near}", BELOW)
        text = f"6. Without BN boundary ones ({near}) hurt more than faraway ones"
        yield _claim(text, "below 0", dataset, f"{NBN}|{near}", f"{NBN}|{far}", BELOW)
        text = f"7. Freezing BN does not repair what boundary ones ({near}) do"
        yield _claim(text, "below 0", dataset, f"{FBN}|{near}", f"{SKYLINE}|{near}", BELOW)
    text = f"8. Frozen BN is worse than no BN with {far}"
    yield _claim(text, "below 0", dataset, f"{FBN}|{far}", f"{NBN}|{far}", BELOW)


TAKEAWAYS = (
    *_takeaways("mnist", ("emnist", "mean"), FAR["mnist"], near_zero=("mean",)),
    *_takeaways("moons", ("boundary",), FAR["moons"]),
)


def _draw_boundaries(rows: Sequence[Row], folder: Path) -> None:
    """Write ``boundaries-<kind>.png`` for every kind of foreign points of which models were kept."""
    for budget, steps in protocols(rows, MOONS)[:1]:  # of several protocols the first is drawn, as in the figure
        there = [row for row in rows if (row["budget"], int(row["steps"])) == (budget, steps)]
        for ood in POOLS["moons"]:
            found = {
                label.curve: result
                for row in there
                for label in read_labels(row["label"])
                if (label.panel, label.column) == ("moons", ood) and (result := kept_result(row, folder)) is not None
            }
            named = {f"{c}\n{budget} budget, {steps:,} steps": found[c] for c in PICTURED if c in found}
            if named:
                scenario = load_scenario("moons", ood, 0.5, seed=0)
                draw_boundaries(scenario, named, folder / f"boundaries-{ood}.png")


def kept_result(row: Row, folder: Path) -> Any:
    """What the picture needs of a run: its model and its accuracy; None where the model was not kept."""
    path = folder / KEPT / f"{row['config_hash']}.{ENDINGS['model']}"
    if not path.is_file():
        return None
    model = build_model(row["model"], (2,), 2, torch.Generator().manual_seed(0))
    model.load_state_dict(load_file(path))
    return SimpleNamespace(model=model.eval(), metrics={"test_accuracy": float(row["test_accuracy"])})


EXPERIMENT = Experiment(
    "fig2",
    "How foreign data hurt: with, without and with frozen batch norm (VAT, 50 %)",
    _cells,
    (
        MOONS,
        Panel("mnist", "MNIST, LeNet", POOLS["mnist"], "foreign images", kind="bars"),
        Panel("cifar10", "CIFAR-10 6/4", POOLS["cifar10"], "foreign images", kind="bars"),
    ),
    claims=TAKEAWAYS,
    notes=(
        "SSL-BN, SSL-NBN, SSL-FBN: plain VAT with, without and with frozen batch norm. A skyline has the foreign data "
        "removed by hand.",
        '`added`: the foreign data are added to a quarter of the own ones (`mode="add"`) instead of replacing them.',
        "`oracle weights without BN`: foreign data fill half of every batch and have no other effect.",
        "What does not depend on the pool is in every column.",
    ),
    finish=_draw_boundaries,
)
EXPERIMENTS = (EXPERIMENT,)
