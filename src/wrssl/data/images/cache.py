"""The rows of a folder of images, decoded once.

A store (``store.py``) belongs to one folder and one way of reading, and its name is derived from the state of every
file in the folder. So a store is never out of date, only missing: then a new one is written, with the rows of unchanged
files taken from the last one. Several programs may do so at once, since each completes a file of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import PIL
import PIL.ImageFile

from wrssl.data.images.decode import Bytes, Unreadable
from wrssl.data.images.files import AnyPath, ImageFile, Skipped, printable
from wrssl.data.images.reader import ImageReader, quiet
from wrssl.data.images.store import TEMPORARY, RowWriter, open_rows

ENDING = ".rows"
_SETTLED = 50_000_000  # ns; the times of files tick every few milliseconds
_UNUSED = 86_400  # s; a day after its last use no program works with a store any more


class Part(NamedTuple):
    """What was read from a folder.

    Attributes:
        rows: uint8 ``(N, C, H, W)``, or rows of an embedding ``(N, d)``; in memory or memory-mapped.
        files: the N files, sorted by name.
        skipped: names and reasons of the others.
        trouble: why nothing could be stored; None where it was, or need not be.
        items: the N paths or texts that were embedded; empty for pixels.
        views: further rows ``(N, d)`` of augmented versions of the items.
    """

    rows: npt.NDArray[Any]
    files: list[ImageFile]
    skipped: list[Skipped]
    trouble: str | None
    items: Sequence[str] = ()
    views: tuple[npt.NDArray[Any], ...] = ()


@dataclass(frozen=True)
class Work:
    """How images are read, none of which changes the result.

    Attributes:
        cache: folder of the stores, or None for none.
        jobs: number of threads.
        progress: show a bar; None for "after two seconds on a terminal".
    """

    cache: Path | None
    jobs: int
    progress: bool | None


def cache_folder(cache_dir: AnyPath | bool | None, part: str = "images") -> Path | None:
    """``cache_dir``, else ``$WRSSL_CACHE``, else ``wrssl/<part>`` in the user's cache folder; None for False."""
    if cache_dir is False:
        return None
    if cache_dir is None or cache_dir is True:
        usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "wrssl" / part
        cache_dir = os.environ.get("WRSSL_CACHE") or usual
    expanded = os.path.expanduser(cache_dir)
    if expanded.startswith("~"):  # without a home folder there is no cache
        return None
    return Path(os.path.abspath(expanded))


class Known:
    """A store of an earlier reading, with its index: what reading each file gave."""

    def __init__(self, rows: Bytes, entries: list[Any]) -> None:
        self.rows = rows
        self._entries: dict[str, tuple[Any, str | None, int]] = {}
        row = 0
        for name, stamp, reason in entries:
            self._entries[name] = stamp and tuple(stamp), reason, row
            row += reason is None
        if row != len(rows):
            raise ValueError("rows and index do not belong together")

    def holds(self, files: list[ImageFile]) -> bool:
        """Whether it has these files as they are now, and no others."""
        return len(files) == len(self._entries) and all(self.has(file) for file in files)

    def has(self, file: ImageFile) -> bool:
        """Whether it has this file as it is now."""
        entry = self._entries.get(file.name)
        return entry is not None and entry[0] == file.stamp

    def reason(self, file: ImageFile) -> str | None:
        """Why this file could not be read; None for one that could."""
        return self._entries[file.name][1]

    def outcome(self, file: ImageFile) -> Bytes | Unreadable:
        """What reading this file gave."""
        _, reason, row = self._entries[file.name]
        return self.rows[row] if reason is None else Unreadable(reason)


def entry(file: ImageFile, outcome: Bytes | Unreadable, now: int) -> list[Any]:
    """A line of the index; without a stamp, so that the file is read again, where the outcome may change unnoticed.

    Args:
        file: the file.
        outcome: what reading it gave.
        now: the time before it was read, in ns. A file that changed in that instant could change again and keep its
            time.
    """
    failed = isinstance(outcome, Unreadable)
    lasting = outcome.lasting if isinstance(outcome, Unreadable) else True
    settled = abs(now - file.stamp[2]) > _SETTLED
    return [file.name, list(file.stamp) if lasting and settled else None, outcome[0] if failed else None]


def look_up(path: Path, way: Mapping[str, Any], shape: tuple[int, ...]) -> Known | None:
    """The store at ``path`` if it is complete, undamaged and made in this way."""
    found = open_rows(path, shape)
    try:
        if found is None or found[1]["way"] != way:
            return None
        return Known(found[0], found[1]["files"])
    except (KeyError, TypeError, ValueError):
        return None


def latest(place: Path, way: Mapping[str, Any], shape: tuple[int, ...]) -> Known | None:
    """The youngest usable store in this folder."""
    with suppress(OSError):
        for path in sorted(place.glob("*" + ENDING), key=lambda p: p.stat().st_mtime_ns, reverse=True):
            if (store := look_up(path, way, shape)) is not None:
                return store
    return None


def tidy(place: Path) -> None:
    """Remove old stores, and what a killed program left, once no program can be using them."""
    with suppress(OSError):
        for path in place.iterdir():
            ours = path.name.endswith(ENDING) or path.name.startswith(TEMPORARY)
            if ours and time.time() - path.stat().st_mtime > _UNUSED:
                path.unlink()


def read_part(files: list[ImageFile], folder: Path, reader: ImageReader, title: str, work: Work) -> Part:
    """The rows of these files, from the cache as far as it has them.

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


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]
