"""Going on with a run from its directory alone."""

from __future__ import annotations

import os
from pathlib import Path

from wrssl.api import DataError, OptionError
from wrssl.data import load_scenario
from wrssl.training.files import read_json
from wrssl.training.fitting import fit
from wrssl.training.result import ARRAY, CONFIG, METRICS, OWN_MODULE, Result, load

# The arguments of fit that config.json stores under their own names.
STORED = (
    "model", "method", "weights", "bn", "steps", "seed", "device", "method_options", "weight_options", "batch_size",
    "lr", "budget", "head", "threads", "fast", "gate", "fallback",
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
    if "ratio" not in recipe:
        raise OptionError(
            "A run on your own data is resumed from Python: wrssl.fit(scenario, ..., out=RUN, resume=True)."
        )
    if config["model"] == OWN_MODULE or ARRAY in config["weight_options"].values():
        return _own(folder)
    scenario = load_scenario(**recipe, data_dir=data_dir)
    stored = {name: config[name] for name in STORED if name in config}
    if not config.get("lr_given", True):
        stored["lr"] = None
    return fit(scenario, out=folder, resume=True, **stored)


def _own(folder: Path) -> Result:
    raise OptionError(
        f"The run in {folder} used a module or an array of yours; go on from Python: "
        "wrssl.fit(scenario, model=..., out=RUN, resume=True)."
    )
