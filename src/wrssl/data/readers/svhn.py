"""SVHN's cropped digits, from MATLAB v5 files.

Only number arrays are read, and nothing else that such a file may hold: no cells, structures, objects. After a header
of 128 bytes come elements: type and length (4 bytes each), then the content. An array is an element (type 14) of
elements: flags, sizes, name, values, each padded to eight bytes; up to four bytes of content may stand in the second
half of the tag. An element of type 15 is another one, compressed by zlib. What a header claims is checked against what
is there before memory is allocated, and a compressed array is unpacked no further than it claims.
"""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from wrssl.data.source import LabeledArrays
from wrssl.errors import DataError

_ARRAY, _COMPRESSED = 14, 15
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_COMPLEX = 0x800
_MAX_BYTES = 1 << 31
_MAX_AXES = 8
_MAX_NAME = 63  # of MATLAB itself
_PIECE = 1 << 20


def read_matlab(path: Path, names: Collection[str]) -> dict[str, npt.NDArray[Any]]:
    """The number arrays with these names; a file that is damaged, or holds something else by such a name, is refused.

    Args:
        path: the file.
        names: of the variables; one that is not in the file is not in the result either.
    """
    try:
        with path.open("rb") as file:
            return {name: array for name, array in _variables(file, names) if array is not None}
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check the file and its permissions.") from error
    except (ValueError, zlib.error) as error:
        raise DataError(f"{path} is no MATLAB v5 file or is damaged ({error}); fetch it again.") from error


def _variables(file: BinaryIO, names: Collection[str]) -> Iterator[tuple[str, npt.NDArray[Any] | None]]:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    header = file.read(128)
    if len(header) < 128 or header[126:] not in (b"IM", b"MI"):
        raise ValueError("the header is missing")
    order = "<" if header[126:] == b"IM" else ">"
    while (start := file.tell()) + 8 <= size:
        kind, length = (int(number) for number in np.frombuffer(file.read(8), f"{order}u4"))
        end = start + 8 + length
        if end > size:
            raise ValueError("it ends inside a variable")
        if kind == _COMPRESSED:
            source = _Source(file, length, order, packed=True)
            kind, length = source.tag()[:2]
        else:
            source = _Source(file, length, order, packed=False)
        if kind == _ARRAY:
            yield _array(source, names)
        file.seek(end)


class _Source:
    """The bytes of one variable, unpacked only as far as they are needed."""

    def __init__(self, file: BinaryIO, length: int, order: str, packed: bool) -> None:
        self.file, self.left, self.order = file, length, order
        self.unpacker = zlib.decompressobj() if packed else None
        self.rest = b""

    def tag(self) -> tuple[int, int, bytearray | None]:
        """Type and length of the next element; its content too where that is part of the tag."""
        raw = self.take(8)
        first, second = (int(number) for number in np.frombuffer(raw, f"{self.order}u4"))
        if first >> 16:
            length = first >> 16
            if length > 4:
                raise ValueError("a short element is too long")
            return first & 0xFFFF, length, raw[4 : 4 + length]
        return first, second, None

    def element(self, most: int) -> tuple[int, bytearray]:
        """Type and content of the next element, which may have at most ``most`` bytes."""
        kind, length, content = self.tag()
        if content is not None:
            return kind, content
        if length > most:
            raise ValueError(f"an element claims {length} bytes where at most {most} are expected")
        found = self.take(length)
        self.take(-length % 8)
        return kind, found

    def take(self, number: int) -> bytearray:
        """``number`` bytes; memory grows with those that are there, never with those that the header claims."""
        found = bytearray()
        while len(found) < number:
            if not self.rest:
                self.rest = self.file.read(min(_PIECE, self.left))
                self.left -= len(self.rest)
            if self.unpacker is None:
                piece, self.rest = self.rest[: number - len(found)], self.rest[number - len(found) :]
            else:
                piece = self.unpacker.decompress(self.rest, number - len(found))
                self.rest = self.unpacker.unconsumed_tail
            if not piece and not self.rest and not self.left:
                raise ValueError("it ends inside a variable")
            found += piece
        return found


def _array(source: _Source, names: Collection[str]) -> tuple[str, npt.NDArray[Any] | None]:
    """The name of a variable, and its values where it is one of ``names``."""
    flags = np.frombuffer(source.element(8)[1], f"{source.order}u4")
    sizes = np.frombuffer(source.element(4 * _MAX_AXES)[1], f"{source.order}i4")
    name = bytes(source.element(_MAX_NAME)[1]).decode("ascii", "replace")
    if name not in names:
        return name, None
    kind = _CLASSES.get(int(flags[0]) & 0xFF) if len(flags) else None
    if kind is None or int(flags[0]) & _COMPLEX:
        raise ValueError(f"{name} is no array of real numbers")
    if not len(sizes) or int(sizes.min()) < 0:
        raise ValueError(f"{name} has no size")
    shape = tuple(int(size) for size in sizes)
    stored, content = source.element(_MAX_BYTES)
    if stored not in _STORED or math.prod(shape) * np.dtype(_STORED[stored]).itemsize != len(content):
        raise ValueError(f"{name} has the size {shape} and {len(content)} bytes")
    values = np.frombuffer(content, source.order + _STORED[stored]).astype(kind, copy=False)
    return name, values.reshape(shape, order="F")


def read_svhn(path: Path) -> LabeledArrays:
    """The images as uint8 ``(N, 3, 32, 32)`` and the digits 0–9 as int64.

    A file holds X ``(32, 32, 3, N)`` and y ``(N, 1)``, where 10 stands for the digit 0.

    Args:
        path: ``train_32x32.mat``, ``test_32x32.mat`` or ``extra_32x32.mat``; only X and y are read.

    Returns:
        Images and labels.
    """
    content = read_matlab(path, ("X", "y"))
    images, digits = content.get("X"), content.get("y")
    if images is None or images.dtype != np.uint8 or images.shape[:3] != (32, 32, 3):
        raise DataError(f"{path} holds no 32x32 color images X; fetch it again.")
    labels = np.empty(0) if digits is None else digits.reshape(-1)
    if images.ndim != 4 or labels.dtype.kind not in "iuf" or len(labels) != images.shape[3] or not len(labels):
        raise DataError(f"{path} holds images {images.shape} and {labels.size} labels; fetch it again.")
    with np.errstate(invalid="ignore"):  # NaN has no whole number; the comparison below finds it
        codes = labels.astype(np.int64)
    if codes.min() < 0 or codes.max() > 10 or (codes != labels).any():
        raise DataError(f"{path} holds labels other than 0 to 10; fetch it again.")
    codes[codes == 10] = 0
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), codes
