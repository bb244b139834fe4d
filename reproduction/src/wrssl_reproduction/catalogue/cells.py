"""Cells as the catalogue writes them: a budget, a seed, what differs; everything else follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wrssl_reproduction.budget import Budget
from wrssl_reproduction.cell import ANY, EVERYWHERE, Cell, Label

# The paper's setting for its own two weightings, its rivals as their authors run them, the default of ``wrssl``.
OPTIONS: dict[str, dict[str, Any]] = {
    "wr-cluster": {"K": 20, "J": 3, "P": 5, "L": 5, "scope": "head", "solver": "neumann", "l1": 1e-7},
    "wr-instance": {"J": 3, "P": 5, "L": 5, "scope": "head", "solver": "neumann", "l1": 1e-7},
    "wr": {"K": 20, "P": 10, "L": 5},
    "l2rw": {"scope": "network"},
    "mwn": {"scope": "network"},
    "ds3l": {"scope": "network"},
}
WITH_WBN = ("wr-cluster", "wr-instance", "wr", "oracle")
PAPERS, DEFAULT = "WR-SSL (paper)", "wr"
WITHOUT = f"{PAPERS} without CRW"
PLAIN, CLEAN, ORACLE = "plain SSL", "clean pool", "oracle weights"
SUPERVISED, LEARNER = "supervised", "supervised + validation labels"
# What the curve of a weighting is compared with: plain, clean, oracle, and the first two with foreign images added.
REFERENCES: dict[str, dict[str, Any]] = {
    PLAIN: {},
    CLEAN: {"clean": True},
    ORACLE: {"weights": "oracle"},
    f"{PLAIN}, added": {"mode": "add"},
    f"{CLEAN}, added": {"mode": "add", "clean": True},
}


def make_cell(
    budget: Budget,
    dataset: str,
    seed: int,
    *labels: Label,
    method: str,
    ood: str,
    weights: str = "none",
    ratio: float = 0.5,
    mode: str = "replace",
    bn: str | None = None,
    batch_norm: bool = True,
    clean: bool = False,
    longer: int = 1,
    at_most: int | None = None,
    keeps: tuple[str, ...] = (),
    alone: bool = False,
    **changes: Any,
) -> Cell:
    """A cell with the budget's numbers and the weighting's options.

    A pool without foreign rows is the same for every kind of them, and supervised training uses no pool: such cells get
    ``ood="any"`` and are run once.

    Args:
        budget: steps, network and validation labels.
        dataset: the data.
        seed: of the run.
        labels: where it is shown.
        method: the base method.
        ood: the kind of foreign rows.
        weights: the weighting.
        ratio: their share.
        mode: how they come in.
        bn: the policy; None takes weighted batch norm for the weightings that use it and plain batch norm for others.
        batch_norm: False for a network without.
        clean: remove the foreign rows again.
        longer: multiplies the budget's steps.
        at_most: the largest number of steps.
        keeps: files that the run leaves behind.
        alone: whether its time is measured.
        changes: other fields of ``Cell``.
    """
    setting = budget.settings[dataset]
    policy = bn or ("weighted" if weights in WITH_WBN else "batch")
    if method == "supervised":
        ood, ratio, mode, clean = ANY, 0.5, "replace", False
    if not batch_norm or method == "supervised":
        policy = "batch"
    if clean or ratio == 0:
        ood = ANY
    steps = longer * setting.steps if at_most is None else min(longer * setting.steps, at_most)
    fields: dict[str, Any] = {
        "n_validation": setting.n_validation, "n_unlabeled": setting.n_unlabeled, **OPTIONS.get(weights, {}), **changes
    }  # fmt: skip
    return Cell(
        dataset, ood, ratio, mode, setting.model + ("" if batch_norm else "-nobn"), method, weights, policy, seed,
        steps, clean=clean, roles=budget.roles, labels=labels, keeps=keeps, alone=alone, **fields,
    )  # fmt: skip


def controls(
    budget: Budget, dataset: str, seed: int, panel: str, column: str = EVERYWHERE, batch_norm: bool = True
) -> Iterator[Cell]:
    """Supervised on the labels, and on the labels and half of the validation labels."""
    for curve, learns in ((SUPERVISED, False), (LEARNER, True)):
        yield make_cell(
            budget, dataset, seed, Label(panel, curve, column), method="supervised", ood=ANY,
            batch_norm=batch_norm, learns_validation=learns,
        )  # fmt: skip


def percent(ratio: float) -> str:
    """A share as a column."""
    return f"{100 * ratio:g}"
