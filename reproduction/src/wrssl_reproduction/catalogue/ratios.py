"""Accuracy against the share of foreign images: what the four parts of Figure 4 and the SVHN table have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wrssl_reproduction.budget import QUICK, Budget
from wrssl_reproduction.catalogue.cells import CLEAN, DEFAULT, ORACLE, PAPERS, PLAIN, controls, make_cell, percent
from wrssl_reproduction.cell import Cell, Label
from wrssl_reproduction.experiment import BELOW, Claim, beats

RATIOS = (0.0, 0.25, 0.5, 0.75)
COLUMNS = (*map(percent, RATIOS), "50 added")
AXIS = "share of foreign images in the pool / %"
WEIGHTINGS = {
    PLAIN: "none", "UASD": "uasd", "DS3L": "ds3l", "L2RW": "l2rw", "MWN": "mwn", PAPERS: "wr-cluster", DEFAULT: "wr",
    ORACLE: "oracle",
}  # fmt: skip
RIVALS = ("UASD", "DS3L", "L2RW", "MWN")
BY_ERROR = f"{PAPERS}, weights by expected error"
ADDED = (PLAIN, PAPERS, DEFAULT, ORACLE)  # with the foreign images added; the quick budget has room for all curves
ERROR_NOTE = (
    "`weights by expected error` is not in the paper: validation examples drive the weights by their expected error, "
    "1 − p(y) at the best temperature, in place of their cross-entropy."
)
NOTES = (
    "At 0 % a clean pool and oracle weights are plain SSL, whose number is shown there.",
    '`50 added`: the foreign images are added to a quarter of the own ones (`mode="add"`) instead of replacing them.',
    "Supervised training does not depend on the pool; its number is in every column.",
)


def sweep(
    budget: Budget,
    panel: str,
    dataset: str,
    ood: str,
    method: str,
    *,
    weightings: Mapping[str, str] = WEIGHTINGS,
    ratios: tuple[float, ...] = RATIOS,
    bn: str | None = None,
    batch_norm: bool = True,
    **changes: Any,
) -> Iterator[Cell]:
    """Every weighting at every ratio, foreign images added at 50 %, and the controls.

    Args:
        budget: the numbers.
        panel: where the cells are shown.
        dataset: the data.
        ood: the kind of foreign images.
        method: the base method.
        weightings: curve to weighting.
        ratios: shares of foreign images.
        bn: the policy for all of them, or None for the usual one of each.
        batch_norm: False for a network without.
        changes: further fields of the cells.
    """
    shared: dict[str, Any] = {"method": method, "ood": ood, "batch_norm": batch_norm, "bn": bn, **changes}
    for seed in range(budget.seeds):
        yield from controls(budget, dataset, seed, panel, batch_norm=batch_norm)
        for ratio in ratios:
            for curve, weights in weightings.items():
                if ratio or weights != "oracle":
                    label = Label(panel, curve, percent(ratio))
                    yield make_cell(budget, dataset, seed, label, weights=weights, ratio=ratio, **shared)
            if ratio:
                label = Label(panel, CLEAN, percent(ratio))
                yield make_cell(budget, dataset, seed, label, ratio=ratio, clean=True, **shared)
            else:  # all weights are 1, and nothing is to be taken out
                same = [Label(panel, curve, percent(ratio)) for curve in (ORACLE, CLEAN)]
                yield make_cell(budget, dataset, seed, *same, ratio=ratio, **shared)
        for curve in weightings if budget.name == QUICK.name else ADDED:
            if curve in weightings:
                label = Label(panel, curve, "50 added")
                yield make_cell(budget, dataset, seed, label, weights=weightings[curve], mode="add", **shared)
        label = Label(panel, CLEAN, "50 added")
        yield make_cell(budget, dataset, seed, label, mode="add", clean=True, **shared)


def driven_by_error(budget: Budget, panel: str, ood: str, method: str, batch_norm: bool = True) -> Iterator[Cell]:
    """Not in the paper: its method at 50 % with the expected error in place of cross-entropy as what drives weights."""
    for seed in budget.pick(range(budget.seeds), range(0)):
        yield make_cell(
            budget, "mnist", seed, Label(panel, BY_ERROR, "50"), method=method, ood=ood, batch_norm=batch_norm,
            weights="wr-cluster", outer_loss="error",
        )  # fmt: skip


def claims(panel: str, words: str = "", ratios: tuple[float, ...] = RATIOS) -> tuple[Claim, ...]:
    """What the paper says about every such sweep: foreign images hurt, and its own method is better than the others."""
    worst, best = percent(ratios[-1]), percent(ratios[0])
    falls = Claim(
        f"Plain SSL falls as the foreign share grows: {worst} % against {best} %{words}", "below 0",
        Label(panel, PLAIN, worst), Label(panel, PLAIN, best), BELOW,
    )  # fmt: skip
    return falls, *beats(panel, "50", PAPERS, RIVALS, f"At 50 %{words}", "above 0")
