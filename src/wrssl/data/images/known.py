"""The stores of one folder: what an earlier reading has left, and can be relied on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from wrssl.data.images.decode import Bytes, Unreadable
from wrssl.data.images.scan import ImageFile
from wrssl.data.images.store import open_rows
from wrssl.data.images.writer import TEMPORARY

ENDING = ".rows"
_SETTLED = 50_000_000  # ns; the times of files tick every few milliseconds
_UNUSED = 86_400  # s; a day after its last use nobody works with a store any more


class Known:
    """A store that can be asked about files."""

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
        """Whether it knows these files as they are now, and no others."""
        return len(files) == len(self._entries) and all(self.has(file) for file in files)

    def has(self, file: ImageFile) -> bool:
        """Whether it knows this file as it is now."""
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
    """A line of the index; without a stamp, so that the file is read again, where the outcome may change unseen.

    Args:
        file: the file.
        outcome: what reading it gave.
        now: the time before it was read, in ns. A file that changed in that instant could change once more and keep
            its time.
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
    """Remove old stores, and what a killed program left, once nobody can be at work with them."""
    with suppress(OSError):
        for path in place.iterdir():
            ours = path.name.endswith(ENDING) or path.name.startswith(TEMPORARY)
            if ours and time.time() - path.stat().st_mtime > _UNUSED:
                path.unlink()
