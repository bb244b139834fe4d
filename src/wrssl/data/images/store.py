"""Rows of bytes in one file, with an index at its end; a torn, damaged or foreign file is noticed.

    the rows, one after the other | index (JSON) | magic, number of rows, length of the index, CRC-32 of rows and index

Rows are written as they come, before their number is known, and are used from the file as they are, memory-mapped. The
file gets its name when it is complete and on the disk, so that a reader sees all of it or nothing. Where it cannot be
written, the rows stay in memory.
"""

from __future__ import annotations

import json
import math
import os
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from wrssl.data.images.decode import Bytes
from wrssl.errors import DataError

END = struct.Struct("<8sQQII")
MAGIC = b"wrssl-im"
TEMPORARY = ".part-"  # how the name of an incomplete file begins
_PIECE = 1 << 24


def open_rows(path: Path, shape: tuple[int, ...]) -> tuple[Bytes, Any] | None:
    """The rows (read-only, on the disk) and the index of a complete and undamaged file, else None."""
    width = math.prod(shape)
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - END.size))
            magic, count, length, crc, index_crc = END.unpack(file.read(END.size))
            if magic != MAGIC or count * width + length + END.size != size:
                return None
            file.seek(count * width)
            text = file.read(length)
            if zlib.crc32(text) != index_crc or _crc(file, count * width) != crc:
                return None
            return map_rows(file, count, shape), json.loads(
                text
            )  # of the opened file, even if its name has been reused
    except (OSError, ValueError, struct.error):
        return None


def _crc(file: BinaryIO, size: int) -> int:
    file.seek(0)
    crc = 0
    while size > 0 and (piece := file.read(min(size, _PIECE))):
        crc = zlib.crc32(piece, crc)
        size -= len(piece)
    return crc


def map_rows(file: Path | BinaryIO, count: int, shape: tuple[int, ...]) -> Bytes:
    """The first ``count`` rows of a file, read-only and on the disk."""
    if count == 0:  # nothing to map
        return np.empty((0, *shape), dtype=np.uint8)
    return np.asarray(np.memmap(file, np.uint8, "r", shape=(count, *shape)))  # a plain array: faster to take rows from


class RowWriter:
    """Takes rows one by one; the caller must close it.

    Args:
        folder: where the file goes, or None to keep the rows in memory.
        shape: of a row.
        most: how many rows there can be.
    """

    def __init__(self, folder: Path | None, shape: tuple[int, ...], most: int) -> None:
        self.trouble: str | None = None
        self._shape, self._most = shape, most
        self._count = self._crc = 0
        self._memory: Bytes | None = None
        self._path: Path | None = None
        self._file: int | None = None
        if folder is None:
            self._memory = self._room()
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file, name = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
            self._path = Path(name)
        except OSError as error:
            self._to_memory(error)

    def append(self, row: Bytes) -> None:
        """One more row."""
        if self._memory is None:
            data = row.tobytes()
            try:
                self._write(data)
                self._crc = zlib.crc32(data, self._crc)
            except OSError as error:  # for example a full disk
                self._to_memory(error)
        if self._memory is not None:
            self._memory[self._count] = row
        self._count += 1

    def finish(self, path: Path, index: Any) -> Bytes:
        """Give the file its name and return its rows."""
        if self._memory is None:
            text = json.dumps(index).encode()
            try:
                self._write(text + END.pack(MAGIC, self._count, len(text), self._crc, zlib.crc32(text)))
                return self._publish(path)
            except OSError as error:
                self._to_memory(error)
        assert self._memory is not None
        return self._memory[: self._count]

    def _publish(self, path: Path) -> Bytes:
        assert self._file is not None
        assert self._path is not None
        os.fsync(self._file)
        self._close_file()
        # Mapped first, so that no process can change the named file in between; Windows cannot rename mapped files.
        rows = None if os.name == "nt" else map_rows(self._path, self._count, self._shape)
        os.replace(self._path, path)
        self._path = None  # nothing to remove
        return map_rows(path, self._count, self._shape) if rows is None else rows

    def close(self) -> None:
        """Remove an incomplete file."""
        self._close_file()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def _room(self) -> Bytes:
        try:
            return np.empty((self._most, *self._shape), dtype=np.uint8)
        except MemoryError as error:
            raise DataError(
                f"{self._most} images do not fit into memory; name a cache_dir that can be written, or a smaller "
                "image_size."
            ) from error

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        rest = memoryview(data)
        while rest:  # one call may write less than it is given
            rest = rest[os.write(self._file, rest) :]

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _to_memory(self, error: OSError) -> None:
        """Continue in memory, with the rows that are in the file."""
        self.trouble = error.strerror or str(error)
        self._memory = self._room()
        if self._count and self._path is not None:
            with self._path.open("rb") as file:
                file.readinto(self._memory[: self._count].data)
        self.close()
