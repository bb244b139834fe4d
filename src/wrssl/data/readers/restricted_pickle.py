"""Read a pickle of plain values and NumPy arrays without executing anything that it asks for.

A pickle is a program that may name any Python callable. Here every name it can use is one of the classes below, which
only store or check bytes: no NumPy code runs on what the file says, arrays are built at the end from a checked type,
shape and length. Any other name is refused.

Python's own unpickler in Python is used, not the one in C: that one trusts a number in the file and allocates memory
for that many memoized values. Keys of dictionaries must be strings, because the hash of nested tuples may take for
ever.
"""

from __future__ import annotations

import io
import math
import pickle  # the one place, and only to refuse what it can do  # nosec B403
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from wrssl.errors import DataError

_Slow: Any = pickle._Unpickler  # has no types
_MAX_AXES, _MAX_SIDE = 8, 1 << 40
_CODES = {"b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"}


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
        # (version, byte order, subtype, names, fields, …): only the byte order of a plain type is used.
        if not isinstance(state, tuple) or len(state) < 5 or any(item is not None for item in state[2:5]):
            refuse("a structured number type")
        order = text_of(state[1])
        if order not in ("<", ">", "|"):
            refuse(f"the byte order {order!r}")
        self.value = self.value.newbyteorder(">" if order == ">" else "<")


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
    """Stop with a ``DataError`` that says what the pickle holds."""
    raise DataError(f"The pickle holds {what}, which is refused as unsafe; fetch the official file.")


def text_of(value: Any) -> str:
    """The value as a short text; never the representation of something nested, which may have no end."""
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    return value if isinstance(value, str) and len(value) <= 20 else "of another kind"


class _TextKeys(dict[Any, Any]):
    """A dictionary while it is read: its keys are strings or bytes."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, (str, bytes)):
            refuse("a key that is no word")
        super().__setitem__(key, value)


class _Unpickler(_Slow):  # type: ignore[misc]
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            refuse(f"the name {module[:40]}.{name[:40]}")
        return ALLOWED[module, name]

    def _dict(self) -> None:
        self.append(_TextKeys())

    def _dict_of_stack(self) -> None:
        items, found = self.pop_mark(), _TextKeys()
        for key, value in zip(items[::2], items[1::2], strict=True):
            found[key] = value
        self.append(found)

    def _set(self) -> None:
        refuse("a set")

    dispatch: ClassVar[dict[int, Any]] = {
        **_Slow.dispatch,
        pickle.EMPTY_DICT[0]: _dict,
        pickle.DICT[0]: _dict_of_stack,
        pickle.EMPTY_SET[0]: _set,
        pickle.FROZENSET[0]: _set,
        pickle.ADDITEMS[0]: _set,
    }


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
    except Exception as error:  # a damaged pickle fails in many ways
        raise DataError(f"{where} is a damaged pickle ({type(error).__name__}); fetch it again.") from error
    if not isinstance(content, dict):
        raise DataError(f"{where} holds no dictionary; fetch the official file.")
    result = {}
    for key, value in content.items():
        name = key.decode("latin-1") if isinstance(key, bytes) else key
        result[name] = getattr(value, "value", None) if isinstance(value, Array) else value
    return result
