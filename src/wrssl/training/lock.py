"""A run directory belongs to one process at a time.

The lock is one of the kernel (``flock``; on Windows ``msvcrt.locking``) on an empty file: it goes with the process that
holds it, however that ends, so there is no such thing as a lock that was left behind.
"""

from __future__ import annotations

import errno
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from wrssl.api import OptionError
from wrssl.parallel import is_worker
from wrssl.training.files import make_folder, storing, write_json
from wrssl.training.rundir import CONFIG, LOCK, STATE, claim

TAKEN = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_held = threading.local()


@contextmanager
def lock_run(folder: Path, devices: int = 1) -> Iterator[None]:
    """Within this the run directory is ours; one that another process works in is refused.

    What holds it already may ask again, in the same thread. Where a run has several processes, the first has the lock.
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
    """Begin a run in an empty folder: within this it is ours, and ``config.json`` is there."""
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
