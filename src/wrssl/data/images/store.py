"""Rows of bytes in one file, with an index at its end; a torn, damaged or foreign file is noticed.

    the rows, one after the other | index (JSON) | magic, number of rows, length of the index, CRC-32 of rows and index

Rows are written as they come, before it is known how many there will be (``writer.py``), and are used from the file as
they are, memory-mapped.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from wrssl.data.images.decode import Bytes

END = struct.Struct("<8sQQII")
MAGIC = b"wrssl-im"
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
            return map_rows(file, count, shape), json.loads(text)  # of this very file, whatever has its name by now
    except (OSError, ValueError, struct.error):
        return None


def _crc(file: Any, size: int) -> int:
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
    return np.asarray(np.memmap(file, np.uint8, "r", shape=(count, *shape)))  # plain: quicker to take rows from
