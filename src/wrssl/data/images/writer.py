"""Rows go to a file one by one; where it cannot be written, they stay in memory.

The file gets its name when it is complete and on the disk, so that whoever opens it sees all of it or nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from wrssl.api import DataError
from wrssl.data.images.decode import Bytes
from wrssl.data.images.store import END, MAGIC, map_rows

TEMPORARY = ".part-"  # how the name begins until then


class RowWriter:
    """Takes rows one by one; the caller closes it in any case.

    Args:
        folder: where the file will be, or None to keep the rows in memory.
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
            except OSError as error:  # the disk is full, say
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
        # Mapped first, so that nobody who touches the named file is in between; Windows cannot rename a mapped file.
        rows = None if os.name == "nt" else map_rows(self._path, self._count, self._shape)
        os.replace(self._path, path)
        self._path = None  # nothing to tidy up
        return map_rows(path, self._count, self._shape) if rows is None else rows

    def close(self) -> None:
        """Remove what is not complete."""
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
        while rest:  # a system may take less than it is given
            rest = rest[os.write(self._file, rest) :]

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _to_memory(self, error: OSError) -> None:
        """Go on in memory, with the rows that the file took."""
        self.trouble = error.strerror or str(error)
        self._memory = self._room()
        if self._count and self._path is not None:
            with self._path.open("rb") as file:
                file.readinto(self._memory[: self._count].data)
        self.close()
