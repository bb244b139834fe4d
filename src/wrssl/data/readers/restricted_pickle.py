"""Read a pickle of plain values and NumPy arrays without executing anything that it asks for.

A pickle is a program that may name any Python callable. Here every name it can use is one of the inert classes
below, which only remember or check bytes: no NumPy code runs on what the file says, arrays are built at the end from
a checked type, shape and length. Any other name is refused.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from wrssl.api import DataError


class _Inert:
    """Base of what a pickle may call; refuses every state that a subclass does not expect."""

    def __setstate__(self, state: Any) -> None:
        _refuse("an unexpected state")


class _Dtype(_Inert):
    """Stands for ``numpy.dtype``: a plain number type, no objects, no fields."""

    def __init__(self, code: Any, *flags: Any) -> None:
        text = code.decode("ascii", "replace") if isinstance(code, bytes) else code
        if not isinstance(text, str) or text.lstrip("<>|=") not in _CODES:
            _refuse(f"the number type {text!r}")
        self.value = np.dtype(text)

    def __setstate__(self, state: Any) -> None:
        # (version, byte order, subtype, names, fields, …): only the byte order of a plain type is taken over.
        if not isinstance(state, tuple) or len(state) < 5 or any(item is not None for item in state[2:5]):
            _refuse("a structured number type")
        order = state[1].decode("ascii", "replace") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|"):
            _refuse(f"the byte order {order!r}")
        self.value = self.value.newbyteorder(">" if order == ">" else "<")


_CODES = {"b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"}


class Array(_Inert):
    """Stands for ``numpy.ndarray``; ``value`` is the array once the pickle has given its state."""

    value: npt.NDArray[Any]

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            _refuse("an unexpected array state")
        _, shape, dtype, fortran, data = state
        raw = data.encode("latin-1") if isinstance(data, str) else data
        self._fill(shape, dtype, "F" if fortran else "C", raw)

    def _fill(self, shape: Any, dtype: Any, order: Any, raw: Any) -> None:
        sizes = isinstance(shape, tuple) and all(isinstance(size, int) and size >= 0 for size in shape)
        if not sizes or not isinstance(dtype, _Dtype) or not isinstance(raw, (bytes, bytearray)) or order not in "CF":
            _refuse("an unexpected array")
        if math.prod(shape) * dtype.value.itemsize != len(raw):
            _refuse(f"an array of shape {shape} with {len(raw)} bytes")
        self.value = np.frombuffer(raw, dtype.value).reshape(shape, order=order)


class _Reconstruct(_Inert):
    """Stands for ``numpy…multiarray._reconstruct``: an empty array that its state fills."""

    def __new__(cls, kind: Any, *rest: Any) -> Any:
        return Array() if kind is Array else _refuse("a subclass of numpy.ndarray")


class _FromBuffer(_Inert):
    """Stands for ``numpy…numeric._frombuffer`` (pickle protocol 5)."""

    def __new__(cls, raw: Any, dtype: Any, shape: Any, order: Any, *rest: Any) -> Any:
        array = Array()
        array._fill(shape, dtype, order, raw)
        return array


class _Encode(_Inert):
    """Stands for ``_codecs.encode``, with which old protocols write bytes; only Latin-1 is done."""

    def __new__(cls, text: Any, encoding: Any = "latin1") -> Any:
        if not isinstance(text, str) or encoding not in ("latin1", b"latin1", "latin-1"):
            _refuse(f"the encoding {encoding!r}")
        return text.encode("latin-1")


class _Bytes(_Inert):
    """Stands for ``bytes()``, with which old protocols write an empty value; bytes(10**12) is refused."""

    def __new__(cls, *rest: Any) -> Any:
        return _refuse("bytes of a given length") if rest else b""


_ALLOWED: dict[tuple[str, str], type] = {
    ("numpy", "ndarray"): Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _Encode,
    ("builtins", "bytes"): _Bytes,
    ("__builtin__", "bytes"): _Bytes,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _FromBuffer for core in ("core", "_core")},
}


def _refuse(what: str) -> NoReturn:
    raise DataError(f"The pickle holds {what}, which is refused as unsafe; fetch the official file.")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            _refuse(f"the name {module}.{name}")
        return _ALLOWED[module, name]


def read_pickle(data: bytes, where: str) -> dict[str, Any]:
    """A pickled dict of plain values; arrays in it come back as NumPy arrays, ``bytes`` keys as strings.

    Args:
        data: the pickle.
        where: the file's name, for messages.

    Returns:
        The dict.
    """
    try:
        content = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    except Exception as error:  # a damaged pickle can fail in any way
        raise DataError(f"{where} is a damaged pickle ({type(error).__name__}); fetch it again.") from error
    if not isinstance(content, dict):
        raise DataError(f"{where} holds no dictionary; fetch the official file.")
    result = {}
    for key, value in content.items():
        name = key.decode("latin-1") if isinstance(key, bytes) else str(key)
        result[name] = getattr(value, "value", None) if isinstance(value, Array) else value
    return result
