"""Experiments by name; each is a file in ``catalogue/`` that holds an ``EXPERIMENT``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from wrssl.api import OptionError
from wrssl.experiments.experiment import Experiment

NAMES = ("fig2", "fig4a", "fig4b", "fig4c", "fig4d", "fig5", "fig6", "table-k", "table-svhn", "table-cifar100")
ALL = "all"


def get_experiment(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in NAMES:
        raise OptionError(f"There is no experiment {name!r}; choose one of {', '.join(NAMES)}, or {ALL}.")
    module = import_module(f"wrssl.experiments.catalogue.{name.replace('-', '_')}")
    experiment: Experiment = module.EXPERIMENT
    return experiment


def get_experiments(name: str, only: Sequence[str] = ()) -> list[Experiment]:
    """One experiment, or every one for ``all``.

    Args:
        name: as in ``wrssl reproduce NAME``.
        only: those of ``all`` that are to be run; looked at for mistakes, since the others share their rows.
    """
    if only and name != ALL:
        raise OptionError(f"--only chooses among the experiments of {ALL}; {name!r} is one by itself, so leave it out.")
    for each in only:
        get_experiment(each)
    return [get_experiment(each) for each in (NAMES if name == ALL else (name,))]
