"""What the paper's published code does otherwise than its text, for the table of clusters (20 of them, three seeds).

From the paper's 2,000 updates with learning rate 3e-4, one change after the other: the optimiser has 2e-3, the three
look-ahead steps move the model itself, and confident pseudo-labels count ten times. And each by itself: mean images are
added up in eight bits, where they wrap around, the Neumann series has the wrong sign (its step is the learning rate),
and its clusters tell own from foreign images nearly everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wrssl.experiments.budget import Budget
from wrssl.experiments.catalogue.cells import (
    CLEAN,
    DEFAULT,
    ORACLE,
    PAPERS,
    PLAIN,
    REFERENCES,
    controls,
    make_cell,
)
from wrssl.experiments.cell import EVERYWHERE, Cell, Label
from wrssl.experiments.experiment import Panel

SEEDS = 3
PRINTED_SETTING = "as printed"
OPTIMISER: dict[str, dict[str, Any]] = {
    "learning rate 2e-3": {"lr": 2e-3},
    "and four updates": {"lr": 2e-3, "longer": 4},
    "and tenfold loss": {"lr": 2e-3, "longer": 4, "compat": "wrssl"},
}
# As many iterations as that code makes. Weights move in every one of them, by plain steps of the last layer, twenty
# times as large as that code's for the whole network (0.1/α with α = 2e-3), which would take nine times as long.
LONGEST = "2e-3, ten thousand steps"
LONG: dict[str, Any] = {"lr": 2e-3, "longer": 5}
PLAIN_STEPS: dict[str, Any] = {"L": 1, "alpha": "lr", "plain_beta": 1000.0}
WRAPPED, SIGN = {"ood": "mean-wrapped"}, {"solver": "neumann-published", "alpha": "lr"}
PURE, PURITY = "clusters 97.4 % pure", {"purity": 0.974}  # as a clustering that comes with the code is
OTHERWISE: dict[str, dict[str, Any]] = {
    "means in eight bits": WRAPPED,
    "published sign": SIGN,
    "both": {**WRAPPED, **SIGN},
    PURE: PURITY,
}
SAME_IMAGES = (PRINTED_SETTING, *(column for column, changes in OTHERWISE.items() if "ood" not in changes))
PURE_CLUSTERS = f"{PAPERS}, {PURE}"
STEPPING = "plain steps"
WITH_TRUTH = (PURE_CLUSTERS, ORACLE)
CURVES: dict[str, dict[str, Any]] = {
    PLAIN: {},
    DEFAULT: {"weights": "wr"},
    PAPERS: {"weights": "wr-cluster"},
    PURE_CLUSTERS: {"weights": "wr-cluster", **PURITY},
    ORACLE: {"weights": "oracle"},
    CLEAN: {"clean": True},
}
METHODS = ("vat", "pl")


def panels() -> Iterator[Panel]:
    """One for the optimiser, under Pseudo-Label, and one for images and sign under each method."""
    changed = {**OPTIMISER, LONGEST: LONG}
    longer = {column: changes["longer"] for column, changes in changed.items() if "longer" in changes}
    yield Panel(
        "published", "PL, K = 20: from the paper's setting to that of its code", (PRINTED_SETTING, *changed),
        "what is changed, but for the last one after the other", kind="bars", longer=longer,
    )  # fmt: skip
    for method in METHODS:
        yield Panel(
            f"otherwise-{method}", f"{method.upper()}, K = 20: images, sign and clusters of the published code",
            (PRINTED_SETTING, *OTHERWISE), "what is changed", kind="bars",
        )  # fmt: skip


def cells(budget: Budget) -> Iterator[Cell]:
    """All of them, seed by seed."""
    for seed in range(min(SEEDS, budget.seeds)):
        yield from _optimiser(budget, seed)
        for method in METHODS:
            yield from _otherwise(budget, seed, method)


def _optimiser(budget: Budget, seed: int) -> Iterator[Cell]:
    """A pool that was cleaned by hand is in every column: it says what any weights could reach there."""
    yield from controls(budget, "mnist", seed, "published", PRINTED_SETTING)
    for column, changes in {PRINTED_SETTING: {}, **OPTIMISER}.items():
        for curve, settings in CURVES.items():
            if "compat" not in changes or curve not in WITH_TRUTH:  # the tenfold loss helped nobody
                yield make_cell(
                    budget, "mnist", seed, Label("published", curve, column), method="pl", ood="mean", **settings,
                    **changes,
                )  # fmt: skip
    plain_steps = {f"{curve}, {STEPPING}": {**CURVES[curve], **PLAIN_STEPS} for curve in (PAPERS, PURE_CLUSTERS)}
    for curve, settings in {PLAIN: CURVES[PLAIN], **plain_steps, CLEAN: CURVES[CLEAN]}.items():
        label = Label("published", curve, LONGEST)
        yield make_cell(budget, "mnist", seed, label, method="pl", ood="mean", **settings, **LONG)


def _otherwise(budget: Budget, seed: int, method: str) -> Iterator[Cell]:
    """Sign and clusters concern the paper's weights only, so the others change with the images alone."""
    panel, shared = f"otherwise-{method}", dict[str, Any]({"method": method, "ood": "mean"})
    ours = {"weights": "wr-cluster"}
    yield from controls(budget, "mnist", seed, panel)
    for curve, settings in REFERENCES.items():
        columns = (EVERYWHERE,) if "clean" in settings else SAME_IMAGES
        places = [Label(panel, curve, column) for column in columns]
        yield make_cell(budget, "mnist", seed, *places, **shared, **settings)
    for column, changes in {PRINTED_SETTING: {}, **OTHERWISE}.items():
        yield make_cell(budget, "mnist", seed, Label(panel, PAPERS, column), **{**shared, **ours, **changes})
    places = [Label(panel, PLAIN, column) for column in OTHERWISE if column not in SAME_IMAGES]
    yield make_cell(budget, "mnist", seed, *places, **{**shared, **WRAPPED})
