"""The run directory: what its files are called, and how one is made without touching another."""

from __future__ import annotations

import os
from pathlib import Path

from wrssl.api import OptionError

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
OWN_MODULE, ARRAY = "own module", "array"  # what config.json says of things that only the caller has


def claim(directory: str | os.PathLike[str]) -> Path:
    """Create a run directory; one that is not empty is never touched."""
    folder = check_free(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(
            f"The run directory {folder} cannot be created ({error.strerror}); choose another."
        ) from error
    return folder


def check_free(directory: str | os.PathLike[str]) -> Path:
    """A path that nothing is at, or an empty folder."""
    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder} is a file; choose another name for the run directory.")
    if folder.is_dir() and any(folder.iterdir()):
        raise OptionError(f"{folder} is not empty; choose another run directory, or resume the run that it holds.")
    return folder


def free_name(stem: str) -> Path:
    """The first of stem, stem-2, stem-3, … that does not exist."""
    for number in range(1, 1000):
        path = Path(stem if number == 1 else f"{stem}-{number}")
        if not path.exists():
            return path
    raise OptionError(f"There are a thousand folders {stem}-…; remove some, or choose one with --out.")
