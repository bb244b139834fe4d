"""The idx format of the MNIST family, plain or gzipped.

Big-endian: two zero bytes, a type code, the number of axes d, then d sizes of 4 bytes each, then the values.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from wrssl.errors import DataError

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PIECE = 1 << 20
_MAX_BYTES = 1 << 31
_MAX_AXES = 8


def read_idx(path: Path) -> npt.NDArray[Any]:
    """The array in an idx or idx.gz file, in the machine's byte order.

    What the header claims is checked against what is there before memory is allocated: the file's length for a plain
    file; a gzipped one is unpacked piece by piece, never further than the header claims.

    Args:
        path: the file; its first two bytes, not its name, say whether it is gzipped.

    Returns:
        The array.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    return _read(unpacked, path, None)
            return _read(raw, path, path.stat().st_size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is a damaged gzip file ({error}); fetch it again.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check the file and its permissions.") from error


def _read(file: BinaryIO | io.BufferedIOBase, path: Path, length: int | None) -> npt.NDArray[Any]:
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in TYPES or not 0 < magic[3] <= _MAX_AXES:
        raise DataError(f"{path} is no idx file (it starts with {magic.hex(' ')}); fetch it again.")
    axes = magic[3]
    header = file.read(4 * axes)
    if len(header) < 4 * axes:
        raise DataError(f"{path} ends inside its header; fetch it again.")
    shape = tuple(int(size) for size in np.frombuffer(header, ">u4"))
    kind = np.dtype(TYPES[magic[2]])
    expected = math.prod(shape) * kind.itemsize
    if not expected:
        raise DataError(f"{path} claims the shape {shape}, which is empty; fetch it again.")
    start = 4 + 4 * axes
    if expected > _MAX_BYTES or (length is not None and length - start != expected):
        there = "more than this reader takes" if length is None else f"{length - start} are there"
        raise DataError(f"{path} claims the shape {shape}, which is {expected} bytes, and {there}; fetch it again.")
    body = bytearray()
    while len(body) <= expected:
        piece = file.read(min(_PIECE, expected + 1 - len(body)))
        if not piece:
            break
        body += piece
    if len(body) != expected:
        there = "more" if len(body) > expected else f"only {len(body)}"
        raise DataError(
            f"{path} claims the shape {shape}, which is {expected} bytes, and holds {there}; fetch it again."
        )
    return np.frombuffer(body, kind).reshape(shape).astype(kind.newbyteorder("="), copy=False)
