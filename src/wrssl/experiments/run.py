"""One cell from data to numbers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from wrssl.api import DivergenceError
from wrssl.data import Scenario
from wrssl.experiments.cell import Cell
from wrssl.experiments.columns import MEASURED
from wrssl.experiments.data import Recipe, load_recipe
from wrssl.experiments.nearly_known import nearly_known_sides
from wrssl.experiments.watching import fit_and_watch

OPTIONS = ("K", "J", "P", "L", "scope", "solver", "l1", "outer_loss", "alpha")


@dataclass(frozen=True)
class Outcome:
    """What a run leaves behind: numbers for its row, and files by their ending, as bytes."""

    measured: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict)


def run_cell(cell: Cell, data_dir: str | None = None) -> Outcome:
    """Train with one thread and the settings of the cell; nothing is written.

    Args:
        cell: what to run.
        data_dir: where the data are; None as in ``load_scenario``.
    """
    begin = time.perf_counter()
    scenario = load_recipe(Recipe.of(cell), data_dir)
    options = {name: getattr(cell, name) for name in OPTIONS if getattr(cell, name) is not None}
    if cell.plain_beta is not None:
        options |= {"compat": "paper", "beta": cell.plain_beta}
    if cell.purity is not None:
        options["embedding"] = nearly_known_sides(scenario, cell.purity, cell.seed)
    # The learner's validation set is the select half already.
    roles = "paper" if cell.learns_validation else cell.roles
    settings: dict[str, Any] = {
        "model": cell.model, "method": cell.method, "weights": cell.weights, "bn": cell.bn, "steps": cell.steps,
        "seed": cell.seed, "weight_options": options, "lr": cell.lr, "budget": roles, "threads": 1,
        "method_options": None if cell.compat is None else {"compat": cell.compat},
        "fallback": False,  # equal steps for all
        "progress": False,
    }  # fmt: skip
    files: dict[str, bytes] = {}
    try:
        if "weights" in cell.keeps:
            result, files["weights.csv"] = fit_and_watch(scenario, settings)
        else:
            import wrssl

            result = wrssl.fit(scenario, **settings)
    except DivergenceError as error:
        raise DivergenceError(f"{cell} broke down: {error}") from error
    if "model" in cell.keeps:
        from safetensors.torch import save

        files["safetensors"] = save({name: value.contiguous() for name, value in result.model.state_dict().items()})
    measured = {name: result.metrics.get(name) for name in (*MEASURED, "mean_weight_id", "mean_weight_ood")}
    measured |= _numbers(scenario) | {"mean_seconds_per_step": _mean_step(result.history)}
    return Outcome({**measured, "seconds": time.perf_counter() - begin}, files)


def _numbers(scenario: Scenario) -> dict[str, int]:
    held = 0 if scenario.validation is None else len(scenario.validation[1])
    return {"n_labels": len(scenario.labeled[1]), "n_validation": held}


def _mean_step(history: Any) -> float | None:
    """Seconds per step after the first row of history: the first steps are slower, and a median hides rare updates."""
    if len(history) < 2:
        return None
    first, last = history.iloc[0], history.iloc[-1]
    return float((last["seconds"] - first["seconds"]) / (last["step"] - first["step"]))
