"""The run directory: its files, how one is made without touching another, and its lock.

A run directory belongs to one process at a time. The lock is one of the kernel (``flock``; on Windows
``msvcrt.locking``) on an empty file: it goes with the process that holds it, however that ends, so no lock is ever left
behind.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from wrssl.api import DataError, OptionError
from wrssl.config import PLACE, PROGRAM, facts_of, options
from wrssl.parallel import is_worker
from wrssl.runs.files import make_folder, plain, read_json, storing, write_json
from wrssl.runs.states import StateWarning

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
JUDGE, PAGE = "judge.safetensors", "report.json"  # in STATE: for new samples, and for the report
LOCK = "lock"  # in STATE

TAKEN = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_held = threading.local()


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
    """A path without a file, or a folder that holds at most what a start that was killed leaves behind."""
    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder} is a file; choose another name for the run directory.")
    if folder.is_dir() and not all(_is_leftover(path) for path in folder.iterdir()):
        raise OptionError(f"{folder} is not empty; choose another run directory, or resume the run that it holds.")
    return folder


def _is_leftover(path: Path) -> bool:
    """Whether this can be there before config.json, which is the first file with content."""
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


@contextmanager
def lock_run(folder: Path, devices: int = 1) -> Iterator[None]:
    """Within this the run directory belongs to this process; one that another process works in is refused.

    The thread that holds it already may ask again. Where a run has several devices, its first process has the lock.
    """
    if is_worker(devices):
        yield
        return
    mine: set[Path] = vars(_held).setdefault("folders", set())
    place = folder.resolve()
    if place in mine:
        yield
        return
    make_folder(folder / STATE)
    with open(folder / STATE / LOCK, "ab") as file:  # closing it is what unlocks
        _take(file, folder)
        mine.add(place)
        try:
            yield
        finally:
            mine.discard(place)


@contextmanager
def new_run(folder: Path, config: dict[str, Any]) -> Iterator[None]:
    """Begin a run in an empty folder: within this it is locked, and ``config.json`` is there."""
    claim(folder)
    with lock_run(folder):
        claim(folder)  # another process may have been quicker
        with storing(f"{CONFIG} in {folder}", "start again."):
            write_json(folder / CONFIG, config)
        yield


def _take(file: BinaryIO, folder: Path) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in TAKEN:
            raise OptionError(f"{folder} is in use by another process; wait until that ends, or stop it.") from error
        # Some network file systems have no locks; that is no reason not to train.
        warnings.warn(f"{folder} cannot be locked ({error.strerror}); let no other process use it", stacklevel=4)


# What computes, and not what is computed: with another version the result may differ in the last bits.
PROGRAMS = ("wrssl", "torch")


def check_same(config: dict[str, Any], stored: dict[str, Any], folder: Path) -> None:
    """Refuse to resume with other settings than those in ``config.json``; warn where another program computes."""
    check_embedding(config.get("embedding"), stored.get("embedding"), folder)
    facts = {each.name: (facts_of(each).resume, _formerly(each)) for each in options()}
    for name, value in plain(config).items():
        resume, default = facts.get(name, (PROGRAM if name in PROGRAMS else None, None))
        before = stored.get(name, default)  # an older version did not have every option
        if value == before or resume == PLACE:
            continue
        if resume != PROGRAM:
            raise OptionError(
                f"The run in {folder} was begun with {name}={before!r}, not with {value!r}; give the same settings, or "
                "another run directory."
            )
        warnings.warn(
            f"the run in {folder} was begun with {name} {before} and goes on with {value}, so that its result may "
            "differ in the last bits from that of an uninterrupted run",
            StateWarning,
            stacklevel=3,
        )


def _formerly(each: dataclasses.Field[Any]) -> Any:
    """The value of an option in runs of versions that did not have it."""
    return each.default if facts_of(each).formerly is ... else facts_of(each).formerly


def check_embedding(now: dict[str, Any] | None, before: dict[str, Any] | None, folder: Path) -> None:
    """Rows of another embedder are other rows: refuse to go on with them."""
    if now is not None and before is not None and now["fingerprint"] != before["fingerprint"]:
        raise OptionError(
            f"The run in {folder} was begun in the embedding {before['fingerprint']}, and {before['name']} is "
            f"{now['fingerprint']} now; install the version that it was begun with, or start a new run."
        )
