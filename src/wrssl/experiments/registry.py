"""Experiments by name; each is a file in ``catalogue/`` that holds an ``EXPERIMENT``."""

from __future__ import annotations

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


def get_experiments(name: str) -> list[Experiment]:
    """One experiment, or every one for ``all``."""
    return [get_experiment(each) for each in (NAMES if name == ALL else (name,))]
