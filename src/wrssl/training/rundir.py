"""The run directory: what its files are called, and how one is made without touching another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wrssl.api import DataError, OptionError
from wrssl.training.files import make_folder, read_json

CONFIG, METRICS, HISTORY, VERDICTS, SKIPPED, MODEL, REPORT, STATE = (
    "config.json",
    "metrics.json",
    "history.csv",
    "verdicts.csv",
    "skipped.csv",
    "model.safetensors",
    "report.html",
    "state",
)
JUDGE, PAGE = "judge.safetensors", "report.json"  # in STATE: for newcomers, and for the report
LOCK = "lock"  # in STATE: see lock.py
OWN_MODULE, ARRAY = "own module", "array"  # what config.json says of things that only the caller has


def claim(directory: str | os.PathLike[str]) -> Path:
    """Create a run directory; one that is not empty is never touched."""
    folder = check_free(directory)
    try:
        make_folder(folder)
    except OSError as error:
        raise OptionError(
            f"The run directory {folder} cannot be created ({error.strerror}); choose another."
        ) from error
    return folder


def check_free(directory: str | os.PathLike[str]) -> Path:
    """A path that nothing is at, or a folder with nothing in it but what a start that was killed leaves behind."""
    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder} is a file; choose another name for the run directory.")
    if folder.is_dir() and not all(_is_leftover(path) for path in folder.iterdir()):
        raise OptionError(f"{folder} is not empty; choose another run directory, or resume the run that it holds.")
    return folder


def _is_leftover(path: Path) -> bool:
    """What can be there before config.json is, which is the first file with a content."""
    if path.name == STATE and path.is_dir():
        return all(inner.name == LOCK for inner in path.iterdir())
    return path.name == f".{CONFIG}.part"


def is_finished(folder: Path) -> bool:
    """Whether the run in this folder is complete; this file is written last."""
    return (folder / METRICS).is_file()


def read_config(folder: Path) -> dict[str, Any]:
    """The settings of the run in this folder."""
    try:
        config = read_json(folder / CONFIG)
    except FileNotFoundError as error:
        raise DataError(f"{folder} holds no run (there is no {CONFIG}); give the folder of a run.") from error
    except ValueError as error:
        raise DataError(f"{folder / CONFIG} is damaged ({error}); put back a copy, or start a new run.") from error
    if not isinstance(config, dict):
        raise DataError(f"{folder / CONFIG} does not hold the settings of a run; put back a copy, or start a new run.")
    return config


def free_name(stem: str) -> Path:
    """The first of stem, stem-2, stem-3, … that does not exist."""
    for number in range(1, 1000):
        path = Path(stem if number == 1 else f"{stem}-{number}")
        if not path.exists():
            return path
    raise OptionError(f"There are a thousand folders {stem}-…; remove some, or choose one with --out.")
