"""Rows that were computed once, by the content of their item.

    <cache>/embeddings/<fingerprint>/<view>/<time>-<random>.rows

A file is a segment: some rows with the hashes of their items. It gets its name when it is complete and on the disk, so
a reader sees all of it or nothing, and a run that is killed loses at most the rows that it had not stored yet. Several
programs may add segments at once. The rows are float16 and memory-mapped.

    magic, number of rows, values per row, CRC-32 of all that follows | hashes, 16 bytes each | rows
"""

from __future__ import annotations

import os
import secrets
import struct
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wrssl.data.images import cache_folder
from wrssl.errors import DataError

HEAD = struct.Struct("<8sQII")
MAGIC = b"wrssl-em"
KEY = 16  # bytes of a content hash
ENDING, PART = ".rows", ".part-"
SMALL = 1 << 26  # bytes; smaller segments are merged when there are more than MANY at the end of a run,
MANY = 8
MOST = 64  # or more than that before: an open segment is an open file, of which a process may have about 1,000
IN_MEMORY = 1 << 28  # bytes up to which the rows of a run are collected in memory, else in a file without a name
_PIECE = 1 << 24
_AT_ONCE = 4096  # rows
_STALE = 86_400  # s; what a killed program left
LIMIT = 20 << 30  # bytes, unless $WRSSL_CACHE_LIMIT says otherwise (a number of gigabytes)

Keys = npt.NDArray[np.void]
Halves = npt.NDArray[np.float16]


def cache_root(cache_dir: str | os.PathLike[str] | bool | None = None) -> Path | None:
    """``cache_dir``, else ``$WRSSL_CACHE``, else ``wrssl`` in the user's cache folder; None for False or no home."""
    return cache_folder(cache_dir, "")


def as_keys(hashes: Sequence[bytes]) -> Keys:
    """Content hashes as an array that can be sorted and compared."""
    return np.frombuffer(b"".join(hashes), dtype=f"V{KEY}")


@dataclass(frozen=True)
class Segment:
    """Some rows: of a complete file of the cache, opened, or in memory (``path`` None)."""

    path: Path | None
    keys: Keys
    rows: Halves


def open_segment(path: Path, dim: int) -> Segment | None:
    """The segment, memory-mapped; None where it is torn, damaged or not ours."""
    try:
        with path.open("rb") as file:
            magic, count, width, crc = HEAD.unpack(file.read(HEAD.size))
            size = count * (KEY + 2 * dim)
            if magic != MAGIC or width != dim or file.seek(0, os.SEEK_END) != HEAD.size + size:
                return None
            file.seek(HEAD.size)
            found = 0
            while piece := file.read(_PIECE):
                found = zlib.crc32(piece, found)
            if found != crc:
                return None
            file.seek(HEAD.size)
            keys = np.frombuffer(file.read(count * KEY), dtype=f"V{KEY}")
            rows = np.memmap(file, np.float16, "r", HEAD.size + count * KEY, (count, dim)) if count else None
            return Segment(path, keys, np.empty((0, dim), np.float16) if rows is None else rows)
    except (OSError, ValueError, struct.error):
        return None


def write_whole(target: Path, *parts: bytes | memoryview) -> None:
    """A file of the cache from its parts, whole or not at all; several programs may write it at once."""
    target.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=PART, dir=target.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def write_segment(folder: Path, keys: Keys, *tables: Halves) -> Path:
    """A new segment with the rows of these tables, whole or not at all."""
    parts: list[bytes | memoryview] = [np.ascontiguousarray(keys).tobytes()]
    parts += [np.ascontiguousarray(rows, np.float16).data for rows in tables]
    found = 0
    for part in parts:
        found = zlib.crc32(part, found)
    target = folder / f"{time.time_ns():020d}-{secrets.token_hex(4)}{ENDING}"
    write_whole(target, HEAD.pack(MAGIC, len(keys), tables[0].shape[1], found), *parts)
    return target


class RowCache:
    """The rows of one embedder and one view.

    Args:
        folder: of the segments; None keeps rows in memory only.
        dim: values per row.

    Attributes:
        trouble: why rows could not be stored; None where they could.
    """

    def __init__(self, folder: Path | None, dim: int) -> None:
        self.folder, self.dim = folder, dim
        self.trouble: str | None = None
        self._segments: list[Segment] = []
        if folder is not None and folder.is_dir():
            for path in sorted(folder.glob("*" + ENDING)):
                segment = open_segment(path, dim)
                if segment is not None:
                    self._segments.append(segment)
                    with suppress(OSError):
                        os.utime(path)  # in use: the oldest files go first where there is a limit
        self._order: tuple[npt.NDArray[np.bytes_], npt.NDArray[np.intp]] | None = None

    def places(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Where the row of each key is, counted over all segments, until rows are added; −1 for one that is missing."""
        known, order = self._sorted()
        if not len(known):
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(known, _comparable(keys)), len(known) - 1)
        found: npt.NDArray[np.int64] = np.where(known[at] == _comparable(keys), order[at], -1)
        return found

    def add(self, keys: Keys, rows: npt.NDArray[np.floating]) -> None:
        """Store rows; a disk that refuses is remembered in ``trouble``, and the rows stay in memory."""
        segment = Segment(None, keys, as_halves(rows))
        if self.folder is not None and self.trouble is None:
            try:
                segment = open_segment(write_segment(self.folder, keys, segment.rows), self.dim) or segment
            except OSError as error:  # for example a full disk
                self.trouble = error.strerror or str(error)
        self._segments.append(segment)
        self._order = None
        self._join(MOST)

    def take(self, places: npt.NDArray[np.int64]) -> Halves:
        """The rows at these places, in this order: in memory, or in a file that nobody else can see.

        The rows of a whole segment in its own order are that segment, without a copy.
        """
        starts = np.cumsum([0, *(len(segment.keys) for segment in self._segments)])
        for start, segment in zip(starts, self._segments, strict=False):
            size = len(segment.keys)
            if len(places) == size and np.array_equal(places, np.arange(start, start + size)):
                return segment.rows
        table = empty_rows(len(places), self.dim, self.folder)
        for low in range(0, len(places), _AT_ONCE):
            some = places[low : low + _AT_ONCE]
            owner = np.searchsorted(starts, some, side="right") - 1
            for number in np.unique(owner).tolist():
                mine = np.flatnonzero(owner == number)
                table[low + mine] = self._segments[number].rows[some[mine] - starts[number]]
        return table

    def merge(self) -> None:
        """Make one file of many small ones, so that their number stays bounded; remove what killed programs left."""
        if self.folder is None or self.trouble is not None:
            return
        self._join(MANY)
        with suppress(OSError):
            for path in self.folder.glob(PART + "*"):
                if time.time() - path.stat().st_mtime > _STALE:
                    path.unlink()

    def _join(self, most: int) -> None:
        """Make one of the small files where there are more than so many; the rows go from file to file."""
        small = [(s.path, s) for s in self._segments if s.path is not None and s.rows.nbytes < SMALL]
        if self.folder is None or self.trouble is not None or len(small) <= most:
            return
        with suppress(OSError):
            keys = np.concatenate([segment.keys for _, segment in small])
            first = np.zeros(len(keys), dtype=np.bool_)
            first[first_of_each(keys)] = True
            ends = np.cumsum([len(segment.keys) for _, segment in small])
            kept = [s.rows if mask.all() else s.rows[mask]
                    for (_, s), mask in zip(small, np.split(first, ends[:-1]), strict=True)]  # fmt: skip
            whole = open_segment(write_segment(self.folder, keys[first], *kept), self.dim)
            if whole is None:
                return
            gone = {path for path, _ in small}
            self._segments = [*(segment for segment in self._segments if segment.path not in gone), whole]
            self._order = None
            for path in gone:
                path.unlink(missing_ok=True)  # another program may have merged them too

    def _sorted(self) -> tuple[npt.NDArray[np.bytes_], npt.NDArray[np.intp]]:
        if self._order is None:
            keys = [_comparable(segment.keys) for segment in self._segments]
            together = np.concatenate(keys) if keys else np.empty(0, dtype=f"S{KEY + 1}")
            order = np.argsort(together, kind="stable")
            self._order = together[order], order
        return self._order


def first_of_each(keys: Keys) -> npt.NDArray[np.intp]:
    """The first place of each key, in ascending order."""
    return np.sort(np.unique(_comparable(keys), return_index=True)[1])


def _comparable(keys: Keys) -> npt.NDArray[np.bytes_]:
    """NumPy sorts byte strings but not voids; a byte at the end keeps zeros there from being cut off."""
    marked = np.ones((len(keys), KEY + 1), dtype=np.uint8)
    marked[:, :KEY] = np.frombuffer(keys.tobytes(), dtype=np.uint8).reshape(-1, KEY)
    return marked.view(f"S{KEY + 1}").reshape(-1)


def as_halves(rows: npt.NDArray[np.floating]) -> Halves:
    """As float16; a value that does not fit is a ``DataError``."""
    with np.errstate(over="ignore"):
        halves = rows.astype(np.float16)
    if not np.isfinite(halves).all():
        raise DataError("The embedder gave values that are not finite, or beyond ±65,504; scale its output.")
    return halves


def empty_rows(count: int, dim: int, folder: Path | None) -> Halves:
    """Room for rows: in memory where they are few, else in a file that has no name and goes with the process."""
    if folder is None or count * dim * 2 <= IN_MEMORY or os.name == "nt":
        return np.empty((count, dim), dtype=np.float16)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(prefix=PART, dir=folder) as file:
        file.truncate(count * dim * 2)
        return np.memmap(file, np.float16, "r+", shape=(count, dim))


@dataclass(frozen=True)
class Entry:
    """One line of ``wrssl cache --list``."""

    what: str
    files: int
    size: int
    used: float


def entries(root: Path) -> Iterator[Entry]:
    """What the cache holds: a line per embedder, one for decoded images, one for converted networks."""
    groups: dict[str, list[os.stat_result]] = {}
    for path in sorted(root.rglob("*")) if root.is_dir() else []:
        if _is_ours(path):
            parts = path.relative_to(root).parts
            what = f"rows of {parts[1]}" if parts[0] == "embeddings" else parts[0]
            groups.setdefault(what if len(parts) > 1 else "other", []).append(path.stat())
    for what, stats in groups.items():
        yield Entry(what, len(stats), sum(s.st_size for s in stats), max(s.st_mtime for s in stats))


def limit() -> int:
    """Bytes that the rows may take."""
    given = os.environ.get("WRSSL_CACHE_LIMIT")
    try:
        return LIMIT if given is None else int(float(given) * (1 << 30))
    except ValueError as error:
        raise DataError(f"WRSSL_CACHE_LIMIT is a number of gigabytes, not {given!r}.") from error


def keep_within(root: Path, most: int) -> int:
    """Remove the segments that were not used for longest until the rest takes at most ``most`` bytes; how many went.

    A program that has a removed file open can go on reading it, except on Windows, where it cannot be removed.
    """
    found = []
    for path in (root / "embeddings").rglob("*" + ENDING):
        with suppress(OSError):
            found.append((path.stat().st_mtime_ns, path.stat().st_size, path))
    total, gone = sum(size for _, size, _ in found), 0
    for _, size, path in sorted(found):
        if total <= most:
            break
        with suppress(OSError):
            path.unlink()
            total, gone = total - size, gone + 1
    return gone


def remove_all(root: Path) -> int:
    """Remove what wrssl keeps there and the folders that are empty then; how many bytes that were.

    Other files stay: ``$WRSSL_CACHE`` may be a folder that holds more.
    """
    gone = 0
    for path in sorted(root.rglob("*"), reverse=True) if root.is_dir() else []:  # files before their folders
        with suppress(OSError):
            if _is_ours(path):
                size = path.stat().st_size
                path.unlink()
                gone += size
            elif path.is_dir():
                path.rmdir()
    return gone


def _is_ours(path: Path) -> bool:
    return path.is_file() and (path.suffix in (ENDING, ".onnx") or path.name.startswith(PART))
