"""The rows of a folder of images, decoded once.

A store (``store.py``) belongs to one folder and one way of reading, and its name says the state of every file in the
folder. So a store is never out of date, only missing: then a new one is written, with the rows of unchanged files taken
from the last one. Several programs may do so at once, since each completes a file of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import PIL
import PIL.ImageFile

from wrssl.data.images.decode import Bytes, Unreadable
from wrssl.data.images.known import ENDING, Known, entry, latest, look_up, tidy
from wrssl.data.images.parallel import quiet
from wrssl.data.images.reader import ImageReader
from wrssl.data.images.scan import ImageFile, Skipped, printable
from wrssl.data.images.writer import RowWriter


class Part(NamedTuple):
    """What was read from a folder.

    Attributes:
        rows: uint8 ``(N, C, H, W)``, in memory or memory-mapped.
        files: the N files, sorted by name.
        skipped: names and reasons of the others.
        trouble: why nothing could be stored, where it should have been.
    """

    rows: Bytes
    files: list[ImageFile]
    skipped: list[Skipped]
    trouble: str | None


@dataclass(frozen=True)
class Work:
    """How the work is done, which does not change the result.

    Attributes:
        cache: folder of the stores, or None for none.
        jobs: number of threads.
        progress: show a bar; None for "after two seconds on a terminal".
    """

    cache: Path | None
    jobs: int
    progress: bool | None


def cache_folder(cache_dir: str | os.PathLike[str] | bool | None) -> Path | None:
    """``cache_dir``, else ``$WRSSL_CACHE``, else ``wrssl/images`` in the user's cache folder; None for False."""
    if cache_dir is False:
        return None
    if cache_dir is None or cache_dir is True:
        usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "wrssl" / "images"
        cache_dir = os.environ.get("WRSSL_CACHE") or usual
    expanded = os.path.expanduser(cache_dir)
    return None if expanded.startswith("~") else Path(os.path.abspath(expanded))  # a user without a home has no cache


def read_part(files: list[ImageFile], folder: Path, reader: ImageReader, title: str, work: Work) -> Part:
    """The rows of these files, from the cache as far as it knows them.

    Args:
        files: what ``scan`` found, sorted by name.
        folder: where it looked.
        reader: how to read.
        title: for the bar.
        work: threads, cache, bar.
    """
    way: dict[str, Any] = {
        "folder": os.path.realpath(folder),
        "pillow": PIL.__version__,  # another version may decode or resize a little differently
        "truncated": bool(PIL.ImageFile.LOAD_TRUNCATED_IMAGES),
        **reader.to_json(),
    }
    if work.cache is None:
        return _read(files, reader, title, work, None, "", way, None)
    place = work.cache / _digest(way)
    name = _digest([(file.name, file.stamp) for file in files]) + ENDING
    known = look_up(place / name, way, reader.shape)
    if known is None or not known.holds(files):
        known = known or latest(place, way, reader.shape)
        return _read(files, reader, title, work, place, name, way, known)
    with suppress(OSError):
        os.utime(place / name)  # still in use
    reasons = [(file, known.reason(file)) for file in files]
    kept = [file for file, reason in reasons if reason is None]
    return Part(known.rows, kept, [(printable(file.name), reason) for file, reason in reasons if reason], None)


def _read(
    files: list[ImageFile],
    reader: ImageReader,
    title: str,
    work: Work,
    place: Path | None,
    name: str,
    way: dict[str, Any],
    known: Known | None,
) -> Part:
    """Decode what is not known and store everything under ``name`` in ``place``."""
    now = time.time_ns()
    kept: list[ImageFile] = []
    skipped: list[Skipped] = []
    index: list[list[Any]] = []
    unknown = [file.path for file in files if known is None or not known.has(file)]
    fresh = reader.outcomes(unknown, title, work.progress, work.jobs)
    with quiet(), closing(RowWriter(place, reader.shape, len(files))) as writer, closing(fresh):
        for file in files:
            outcome = known.outcome(file) if known is not None and known.has(file) else next(fresh)
            index.append(entry(file, outcome, now))
            if isinstance(outcome, Unreadable):
                skipped.append((printable(file.name), outcome.reason))
            else:
                kept.append(file)
                writer.append(outcome)
        rows = writer.finish((place or Path()) / name, {"way": way, "files": index})
    if place is not None:
        tidy(place)
    return Part(rows, kept, skipped, writer.trouble)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]
