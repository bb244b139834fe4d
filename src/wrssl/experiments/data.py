"""The data of a cell."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import lru_cache

import torch

from wrssl.api import DataError
from wrssl.data import Scenario, find_scenario, list_scenarios, load_scenario
from wrssl.experiments.cell import ANY, Cell
from wrssl.training.roles import assign_roles

CLASSES = {"moons": 2, "digits": 10, "mnist": 10, "cifar10": 6, "cifar100": 50, "svhn": 5}


@dataclass(frozen=True)
class Recipe:
    """What decides the data; cells with equal recipes share them."""

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


@lru_cache(maxsize=1)  # cells are dealt out in the order of their data, so the next one often needs the same
def load_recipe(recipe: Recipe, data_dir: str | None) -> Scenario:
    """Load, and move validation labels to the labelled ones where the recipe says so."""
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
