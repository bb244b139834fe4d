"""The columns of results.csv."""

from __future__ import annotations

from typing import Any

from wrssl.experiments.cell import Cell, label_text

SETTINGS = (
    "dataset", "ood", "ratio", "mode", "model", "method", "weights", "bn", "seed", "steps", "n_labels", "n_validation",
    "K", "J", "P", "L", "scope", "solver",
)  # fmt: skip
MEASURED = ("test_accuracy", "val_accuracy", "ood_auroc", "ood_fpr95", "weight_auroc", "seconds_per_step")
MORE_SETTINGS = ("clean", "learns_validation", "roles", "lr", "l1", "compat", "outer_loss")
MORE_MEASURED = ("mean_weight_id", "mean_weight_ood", "mean_seconds_per_step", "seconds")
COLUMNS = (
    "experiment", *SETTINGS, *MEASURED, "config_hash", "commit",
    *MORE_SETTINGS, *MORE_MEASURED, "budget", "label", "torch", "machine",
)  # fmt: skip
EXACT = ("ratio", "lr", "l1")  # settings, written as they are; what was measured is rounded
DIGITS = 6


def make_row(experiment: str, cell: Cell, budget: str, measured: dict[str, Any]) -> dict[str, str]:
    """A row as text.

    Args:
        experiment: its name.
        cell: what was run, and where it is shown.
        budget: its name.
        measured: the numbers, and what ``provenance.py`` says.
    """
    row: dict[str, Any] = {name: getattr(cell, name) for name in (*SETTINGS, *MORE_SETTINGS)}
    row |= {"experiment": experiment, "budget": budget, "config_hash": cell.config_hash}
    row |= {"label": label_text(cell.labels), **measured}
    return {name: _text(name, row.get(name)) for name in COLUMNS}


def again(row: dict[str, str], experiment: str, cell: Cell, budget: str) -> dict[str, str]:
    """The row of another experiment that made the very same run."""
    return {**row, "experiment": experiment, "budget": budget, "label": label_text(cell.labels)}


def _text(name: str, value: Any) -> str:
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, float) and name not in EXACT:
        return f"{value:.{DIGITS}g}"
    return str(value)
