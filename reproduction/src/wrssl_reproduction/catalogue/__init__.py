"""Experiments by name; ``EXPERIMENTS`` of a file here holds those of one figure or of similar tables.

``cells.py`` makes single cells, ``ratios.py`` what Figure 4 and the tables of photographs share.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from wrssl.errors import OptionError
from wrssl_reproduction.experiment import Experiment

FILES = {
    "fig2": "fig2", "fig4a": "fig4", "fig4b": "fig4", "fig4c": "fig4", "fig4d": "fig4", "fig5": "fig5", "fig6": "fig6",
    "table-k": "table_k", "table-svhn": "photo_tables", "table-cifar100": "photo_tables",
}  # fmt: skip
NAMES = tuple(FILES)
ALL = "all"


def get_experiment(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in NAMES:
        raise OptionError(f"There is no experiment {name!r}; choose one of {', '.join(NAMES)}, or {ALL}.")
    experiments: Sequence[Experiment] = import_module(f"{__name__}.{FILES[name]}").EXPERIMENTS
    return next(each for each in experiments if each.name == name)


def get_experiments(name: str, only: Sequence[str] = ()) -> list[Experiment]:
    """One experiment, or every one for ``all``.

    Args:
        name: as in ``wrssl reproduce NAME``.
        only: those of ``all`` that are to be run; only checked here, since the others share their rows.
    """
    if only and name != ALL:
        raise OptionError(f"--only chooses among the experiments of {ALL}; {name!r} is one by itself, so leave it out.")
    for each in only:
        get_experiment(each)
    return [get_experiment(each) for each in (NAMES if name == ALL else (name,))]
