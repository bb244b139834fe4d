"""Resuming a run from its directory alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from wrssl.api import DataError, OptionError
from wrssl.config import ARRAY, OWN_MODULE, FitConfig
from wrssl.data import Scenario, load_scenario
from wrssl.embedding import OWN_EMBEDDER
from wrssl.runs import Result, check_embedding, is_finished, load, lock_run, read_config
from wrssl.training.assembly import describe
from wrssl.training.fitting import fit_with_config
from wrssl.training.seeing import see


def resume_run(
    directory: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    devices: int | None = None,
    strategy: str | None = None,
) -> Result:
    """Continue the run in ``directory`` where it stopped; a finished one is read and left as it is.

    Args:
        directory: a run directory.
        data_dir: where the data files are, if not in the usual place.
        devices: processes that share the passes; None takes as many as the run had.
        strategy: how they do it; None takes what the run had.
    """
    folder = Path(directory)
    config = read_config(folder)
    if is_finished(folder):
        return load(folder, AbsentModule() if config["model"] == OWN_MODULE else None)
    recipe = dict(config["scenario"])
    if config.get("embedder") == OWN_EMBEDDER:
        raise OptionError(
            f"The run in {folder} used an embedder of yours; go on from Python: "
            "wrssl.fit(scenario, embedder=..., out=RUN, resume=True)."
        )
    if "ratio" not in recipe and "folders" not in recipe:
        raise OptionError(
            "A run on your own data is resumed from Python: wrssl.fit(scenario, ..., out=RUN, resume=True)."
        )
    if config["model"] == OWN_MODULE or ARRAY in config["weight_options"].values():
        raise OptionError(
            f"The run in {folder} used a module or an array of yours; go on from Python: "
            "wrssl.fit(scenario, model=..., out=RUN, resume=True)."
        )
    options = FitConfig.of_stored(config, out=folder, resume=True)
    options = options.but(devices=devices or options.devices, strategy=strategy or options.strategy)
    with lock_run(folder, options.devices):  # before the data is read, which can take long
        if "folders" in recipe:
            scenario, options, _ = see(Scenario.from_folders(**recipe["folders"]), options)
            _check_unchanged(scenario, config, folder)
        else:
            scenario = load_scenario(**recipe, data_dir=data_dir)
        return fit_with_config(scenario, options)


class AbsentModule(nn.Module):
    """Stands for the user's own module where a finished run is only read."""

    def load_state_dict(self, *_: Any, **__: Any) -> Any:
        """Nothing to load into."""

    def forward(self, x: Tensor) -> Tensor:
        """Nothing to compute with."""
        raise OptionError("This run was made with your own module; use wrssl.load(RUN, model=...).")


def _check_unchanged(scenario: Scenario, config: dict[str, Any], folder: Path) -> None:
    """A run goes on only with the files that it began with."""
    now = {**describe(scenario), "scenario": config["scenario"]}
    check_embedding(now.pop("embedding"), config.get("embedding"), folder)
    for name, value in now.items():
        if value != config[name]:
            raise DataError(
                f"The images have changed since the run in {folder} began ({name} was {config[name]}, is {value}); "
                "start a new run."
            )
