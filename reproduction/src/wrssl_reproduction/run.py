"""One cell: its data, its training, its numbers."""

from __future__ import annotations

import time
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import wrssl
from wrssl.api import Weighting
from wrssl.data import Scenario, find_scenario, list_scenarios, load_scenario
from wrssl.errors import DataError, DivergenceError
from wrssl.evaluate import is_ood
from wrssl.training import Callback, Trainer, assign_roles
from wrssl_reproduction import published_code
from wrssl_reproduction.cell import ANY, Cell
from wrssl_reproduction.rows import MEASURED

published_code.register()  # in every process that runs cells

OPTIONS = ("K", "J", "P", "L", "scope", "solver", "l1", "outer_loss", "alpha")
CLASSES = {"moons": 2, "digits": 10, "mnist": 10, "cifar10": 6, "cifar100": 50, "svhn": 5}
HEADER = "step,mean_weight_id,mean_weight_ood,val_accuracy"  # of the file with mean weights over the steps
CHUNK = 10_000  # members whose weights are read at once


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
    settings = settings_of(cell, scenario)
    watcher = GroupMeans.of(scenario) if "weights" in cell.keeps else None
    try:
        result = wrssl.fit(scenario, callbacks=[watcher] if watcher else [], **settings)
    except DivergenceError as error:
        raise DivergenceError(f"{cell} broke down: {error}") from error
    files = {"weights.csv": watcher.csv()} if watcher else {}
    if "model" in cell.keeps:
        from safetensors.torch import save

        files["safetensors"] = save({name: value.contiguous() for name, value in result.model.state_dict().items()})
    measured = {name: result.metrics.get(name) for name in (*MEASURED, "mean_weight_id", "mean_weight_ood")}
    measured |= _numbers(scenario) | {"mean_seconds_per_step": _mean_step(result.history)}
    return Outcome({**measured, "seconds": time.perf_counter() - begin}, files)


def settings_of(cell: Cell, scenario: Scenario) -> dict[str, Any]:
    """The keywords of ``wrssl.fit`` for a cell."""
    options = {name: getattr(cell, name) for name in OPTIONS if getattr(cell, name) is not None}
    if cell.plain_beta is not None:
        options |= {"compat": "paper", "beta": cell.plain_beta}
    if cell.purity is not None:
        options["embedding"] = published_code.nearly_known_sides(scenario, cell.purity, cell.seed)
    return {
        "model": cell.model,
        "method": cell.method if cell.compat is None else published_code.PSEUDO_LABELS[cell.compat],
        "weights": cell.weights,
        "bn": cell.bn,
        "steps": cell.steps,
        "seed": cell.seed,
        "weight_options": options,
        "lr": cell.lr,
        # A run that learns half of the validation labels has the other half as its whole validation set.
        "budget": "paper" if cell.learns_validation else cell.roles,
        "threads": 1,
        "fallback": False,  # equal steps for all
        "progress": False,
    }


def _numbers(scenario: Scenario) -> dict[str, int]:
    held = 0 if scenario.validation is None else len(scenario.validation[1])
    return {"n_labels": len(scenario.labeled[1]), "n_validation": held}


def _mean_step(history: Any) -> float | None:
    """Seconds per step after the first row of history: the first steps are slower, and a median hides rare updates."""
    if len(history) < 2:
        return None
    first, last = history.iloc[0], history.iloc[-1]
    return float((last["seconds"] - first["seconds"]) / (last["step"] - first["step"]))


@dataclass(frozen=True)
class Recipe:
    """What determines the data; cells with equal recipes share them."""

    dataset: str
    ood: str
    ratio: float
    mode: str
    seed: int
    clean: bool
    labels_per_class: int | None
    n_validation: int | None
    n_unlabeled: int | None
    learns_validation: bool

    @classmethod
    def of(cls, cell: Cell) -> Recipe:
        """The recipe of a cell."""
        per_class = None if cell.n_labels is None else cell.n_labels // CLASSES[cell.dataset]
        ood = list_scenarios()[cell.dataset][0] if cell.ood == ANY else cell.ood
        return cls(
            cell.dataset, ood, cell.ratio, cell.mode, cell.seed, cell.clean, per_class, cell.n_validation,
            cell.n_unlabeled, cell.learns_validation,
        )  # fmt: skip


@lru_cache(maxsize=1)  # cells are in the order of their data, so the next one often needs the same
def load_recipe(recipe: Recipe, data_dir: str | None) -> Scenario:
    """Load the data, and move validation labels to the labeled ones where the recipe asks for it."""
    name, ood, ratio, mode, seed, clean, per_class, n_validation, n_unlabeled, learns = astuple(recipe)
    scenario = load_scenario(
        name, ood, ratio, mode, seed, data_dir, clean=clean, labels_per_class=per_class,
        validation_size=n_validation, unlabeled_size=n_unlabeled,
    )  # fmt: skip
    return _with_validation_labels(scenario, seed) if learns else scenario


def _with_validation_labels(scenario: Scenario, seed: int) -> Scenario:
    """The half that would drive weights is learned; the other half chooses the checkpoint, as for every method."""
    roles = assign_roles(scenario.validation, seed, "halves")
    assert roles.meta is not None, "an experiment without validation labels has no such control"
    labeled = tuple(torch.cat([own, more]) for own, more in zip(scenario.labeled, roles.meta, strict=True))
    # Classes are numbers already, and Scenario would number them again in the same order.
    return Scenario(
        (labeled[0], labeled[1]), scenario.unlabeled, roles.select, scenario.test,
        name="labels and validation labels", noise=scenario.noise, augment=scenario.augment,
        vat_epsilon=scenario.vat_epsilon,
    )  # fmt: skip


def missing_data(cell: Cell, data_dir: str | None) -> str | None:
    """A sentence about what is missing for this cell, or None."""
    try:
        find_scenario(cell.dataset, None if cell.ood == ANY else cell.ood, data_dir)
    except DataError as error:
        return str(error)
    return None


class GroupMeans(Callback):
    """Records the mean weight of in-distribution and of foreign members before the first step and at each evaluation.

    It belongs to the evaluation and knows the truth, which no training object may see.
    """

    def __init__(self, foreign: NDArray[np.bool_]) -> None:
        self.foreign = foreign
        self.rows: list[str] = []

    @classmethod
    def of(cls, scenario: Scenario) -> GroupMeans:
        """For a scenario whose pool has members of both groups."""
        truth = is_ood(scenario)
        if truth is None or bool(truth.all()) or not bool(truth.any()):
            raise DataError(
                "Weight curves need a pool with both own and foreign members; choose a ratio between 0 and 1."
            )
        return cls(truth.numpy())

    def on_start(self, trainer: Trainer) -> None:
        """The weights that training begins with."""
        self._record(trainer, trainer.done)

    def on_evaluate(self, trainer: Trainer, row: dict[str, Any]) -> None:
        """The current weights."""
        accuracy = "" if row["val_accuracy"] is None else f"{row['val_accuracy']:.6g}"
        self._record(trainer, int(row["step"]), accuracy)

    def _record(self, trainer: Trainer, step: int, accuracy: str = "") -> None:
        w = weights_of_all(trainer.weighting, len(self.foreign))
        self.rows.append(f"{step},{w[~self.foreign].mean():.6g},{w[self.foreign].mean():.6g},{accuracy}")

    def csv(self) -> bytes:
        """The content of the file."""
        return "\n".join([HEADER, *self.rows, ""]).encode()


def weights_of_all(weighting: Weighting, size: int) -> NDArray[np.float64]:
    """The current weight of every member; only one chunk at a time needs more than its eight bytes per member."""
    weights = np.empty(size)
    for start in range(0, size, CHUNK):
        index = torch.arange(start, min(start + CHUNK, size))
        weights[start : start + CHUNK] = weighting.batch(index).weight.cpu().numpy()
    return weights
