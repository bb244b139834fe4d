"""Going on with a run from its directory alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wrssl.api import DataError, OptionError
from wrssl.data import Scenario, load_scenario
from wrssl.training.assembly import describe
from wrssl.training.files import read_json
from wrssl.training.fitting import fit
from wrssl.training.result import Result
from wrssl.training.rundir import ARRAY, CONFIG, METRICS, OWN_MODULE
from wrssl.training.stored import load

# The arguments of fit that config.json stores under their own names.
STORED = (
    "model", "method", "weights", "bn", "steps", "seed", "device", "method_options", "weight_options", "batch_size",
    "lr", "budget", "head", "threads", "fast", "gate", "fallback", "false_drop_rate",
)  # fmt: skip


def resume_run(directory: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None = None) -> Result:
    """Continue the run in ``directory`` where it stopped; a finished one is read and left as it is.

    Args:
        directory: a run directory.
        data_dir: where the data files are, if not in the usual place.
    """
    folder = Path(directory)
    if not (folder / CONFIG).is_file():
        raise DataError(f"{folder} holds no run (there is no {CONFIG}); give the folder of a run.")
    config = read_json(folder / CONFIG)
    if (folder / METRICS).is_file():
        return load(folder) if config["model"] != OWN_MODULE else _own(folder)
    recipe = dict(config["scenario"])
    if "ratio" not in recipe and "folders" not in recipe:
        raise OptionError(
            "A run on your own data is resumed from Python: wrssl.fit(scenario, ..., out=RUN, resume=True)."
        )
    if config["model"] == OWN_MODULE or ARRAY in config["weight_options"].values():
        return _own(folder)
    if "folders" in recipe:
        scenario = Scenario.from_folders(**recipe["folders"])
        _check_unchanged(scenario, config, folder)
    else:
        scenario = load_scenario(**recipe, data_dir=data_dir)
    stored = {name: config[name] for name in STORED if name in config}
    if not config.get("lr_given", True):
        stored["lr"] = None
    return fit(scenario, out=folder, resume=True, **stored)


def _check_unchanged(scenario: Scenario, config: dict[str, Any], folder: Path) -> None:
    """A run goes on only with the files that it began with."""
    now = {**describe(scenario), "scenario": config["scenario"]}
    for name, value in now.items():
        if value != config[name]:
            raise DataError(
                f"The images have changed since the run in {folder} began ({name} was {config[name]}, is {value}); "
                "start a new run."
            )


def _own(folder: Path) -> Result:
    raise OptionError(
        f"The run in {folder} used a module or an array of yours; go on from Python: "
        "wrssl.fit(scenario, model=..., out=RUN, resume=True)."
    )
