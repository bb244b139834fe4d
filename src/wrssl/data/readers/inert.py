"""What a pickle may name: classes that only remember or check bytes, and stand for those of NumPy."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from wrssl.api import DataError


class _Inert:
    """Base of what a pickle may call; refuses every state that a subclass does not expect."""

    def __setstate__(self, state: Any) -> None:
        refuse("an unexpected state")


class _Dtype(_Inert):
    """Stands for ``numpy.dtype``: a plain number type, no objects, no fields."""

    def __init__(self, code: Any, *flags: Any) -> None:
        text = text_of(code)
        if text.lstrip("<>|=") not in _CODES:
            refuse(f"the number type {text!r}")
        self.value = np.dtype(text)

    def __setstate__(self, state: Any) -> None:
        # (version, byte order, subtype, names, fields, …): only the byte order of a plain type is taken over.
        if not isinstance(state, tuple) or len(state) < 5 or any(item is not None for item in state[2:5]):
            refuse("a structured number type")
        order = text_of(state[1])
        if order not in ("<", ">", "|"):
            refuse(f"the byte order {order!r}")
        self.value = self.value.newbyteorder(">" if order == ">" else "<")


_MAX_AXES, _MAX_SIDE = 8, 1 << 40
_CODES = {"b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"}


class Array(_Inert):
    """Stands for ``numpy.ndarray``; ``value`` is the array once the pickle has given its state."""

    value: npt.NDArray[Any]

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            refuse("an unexpected array state")
        _, shape, dtype, fortran, data = state
        raw = data.encode("latin-1") if isinstance(data, str) else data
        self._fill(shape, dtype, "F" if fortran else "C", raw)

    def _fill(self, shape: Any, dtype: Any, order: Any, raw: Any) -> None:
        sizes = isinstance(shape, tuple) and len(shape) <= _MAX_AXES
        if not sizes or not all(type(size) is int and 0 <= size <= _MAX_SIDE for size in shape):
            refuse("an array without a shape")
        if not isinstance(dtype, _Dtype) or not isinstance(raw, (bytes, bytearray)) or text_of(order) not in ("C", "F"):
            refuse("an unexpected array")
        if math.prod(shape) * dtype.value.itemsize != len(raw):
            refuse(f"an array of shape {shape} with {len(raw)} bytes")
        self.value = np.frombuffer(raw, dtype.value).reshape(shape, order="F" if text_of(order) == "F" else "C")


class _Reconstruct(_Inert):
    """Stands for ``numpy…multiarray._reconstruct``: an empty array that its state fills."""

    def __new__(cls, kind: Any, *rest: Any) -> Any:
        return Array() if kind is Array else refuse("a subclass of numpy.ndarray")


class _FromBuffer(_Inert):
    """Stands for ``numpy…numeric._frombuffer`` (pickle protocol 5)."""

    def __new__(cls, raw: Any, dtype: Any, shape: Any, order: Any, *rest: Any) -> Any:
        array = Array()
        array._fill(shape, dtype, order, raw)
        return array


class _Encode(_Inert):
    """Stands for ``_codecs.encode``, with which old protocols write bytes; only Latin-1 is done."""

    def __new__(cls, text: Any, encoding: Any = "latin1") -> Any:
        if not isinstance(text, str) or text_of(encoding) not in ("latin1", "latin-1"):
            refuse(f"the encoding {text_of(encoding)!r}")
        return text.encode("latin-1")


class _Bytes(_Inert):
    """Stands for ``bytes()``, with which old protocols write an empty value; bytes(10**12) is refused."""

    def __new__(cls, *rest: Any) -> Any:
        return refuse("bytes of a given length") if rest else b""


ALLOWED: dict[tuple[str, str], type] = {
    ("numpy", "ndarray"): Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _Encode,
    ("builtins", "bytes"): _Bytes,
    ("__builtin__", "bytes"): _Bytes,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _FromBuffer for core in ("core", "_core")},
}


def refuse(what: str) -> NoReturn:
    """Say what the pickle wants, and stop."""
    raise DataError(f"The pickle holds {what}, which is refused as unsafe; fetch the official file.")


def text_of(value: Any) -> str:
    """A short word; never the representation of something nested, which may have no end."""
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    return value if isinstance(value, str) and len(value) <= 20 else "of another kind"
