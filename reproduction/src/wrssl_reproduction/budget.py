"""How much work: the paper's protocol, one that a CPU can do, or a quick look; all but the first say so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from wrssl.errors import OptionError

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """What a budget says about a data set; None for its own number."""

    model: str
    steps: int
    n_validation: int | None = None
    n_unlabeled: int | None = None


@dataclass(frozen=True)
class Budget:
    """The numbers that all cells of an experiment share.

    Attributes:
        name: ``"paper"``, ``"reduced"`` or ``"quick"``.
        seeds: seeds 0 to seeds − 1 are run.
        roles: of the validation labels, see ``Cell``.
        settings: of each data set.
        note: the sentence that stands above every table and figure.
    """

    name: str
    seeds: int
    roles: str
    settings: dict[str, Setting]
    note: str

    def pick(self, paper: T, others: T) -> T:
        """What this budget takes."""
        return paper if self.name == "paper" else others

    def changed(self, seeds: int | None, steps: int | None) -> Budget:
        """The same budget with another number of seeds or steps where one is given."""
        if seeds is not None and seeds < 1:
            raise OptionError(f"seeds counts the runs of every cell and must be at least 1, not {seeds}.")
        if steps is not None and steps < 1:
            raise OptionError(f"steps must be at least 1, not {steps}.")
        settings = self.settings
        if steps is not None:
            settings = {name: replace(setting, steps=steps) for name, setting in settings.items()}
        return replace(self, seeds=self.seeds if seeds is None else seeds, settings=settings)


PAPER = Budget(
    "paper",
    5,
    "paper",
    {
        "moons": Setting("mlp", 2000),
        "mnist": Setting("lenet", 2000),
        "cifar10": Setting("wrn-28-2", 500_000),
        "cifar100": Setting("wrn-28-2", 500_000),
        "svhn": Setting("wrn-28-2", 500_000),
    },
    "Budget `paper`: the paper's protocol; one validation set drives the weights and chooses the checkpoint, as there.",
)
REDUCED = Budget(
    "reduced",
    2,
    "paper",
    {
        "moons": PAPER.settings["moons"],
        "mnist": PAPER.settings["mnist"],
        "cifar10": Setting("small_cnn", 500),
        "cifar100": Setting("small_cnn", 500),
        "svhn": Setting("small_cnn", 500),
    },
    "Budget `reduced`: the paper's data, labels and roles of the validation set, but REDUCED to what a CPU can do: a "
    "small network and 500 steps in place of WRN-28-2 and 500,000, two seeds, fewer cells.",
)
QUICK = Budget(
    "quick",
    1,
    "halves",
    {
        "moons": Setting("mlp", 300),
        "mnist": Setting("lenet", 200, 1000, 10_000),
        "cifar10": Setting("small_cnn", 20, 500, 2000),
        "cifar100": Setting("small_cnn", 20, 500, 2000),
        "svhn": Setting("small_cnn", 20, 500, 2000),
    },
    "Budget `quick`: a REDUCED protocol with far fewer steps, seeds, cells, validation labels and pool members, and a "
    "small network in place of WRN-28-2; it shows that everything runs and says little about the paper's numbers.",
)
BUDGETS = {budget.name: budget for budget in (PAPER, REDUCED, QUICK)}


def get_budget(name: str, seeds: int | None = None, steps: int | None = None) -> Budget:
    """A budget by name, with another number of seeds or steps where one is given."""
    if name not in BUDGETS:
        raise OptionError(f"budget must be one of {', '.join(BUDGETS)}, not {name!r}.")
    return BUDGETS[name].changed(seeds, steps)
