"""Read a pickle of plain values and NumPy arrays without executing anything that it asks for.

A pickle is a program that may name any Python callable. Here every name it can use is one of the classes of
``inert.py``, which only remember or check bytes: no NumPy code runs on what the file says, arrays are built at the end
from a checked type, shape and length. Any other name is refused.

Python's own unpickler in Python is used, not the one in C: that one believes a number in the file and sets aside room
for so many memoised values. Keys of dictionaries are words, because the hash of nested tuples may take for ever.
"""

from __future__ import annotations

import io
import pickle  # the one place, and only to refuse what it can do  # nosec B403
from typing import Any, ClassVar

from wrssl.api import DataError
from wrssl.data.readers.inert import ALLOWED, Array, refuse

_Slow: Any = pickle._Unpickler  # has no types


class _Words(dict[Any, Any]):
    """A dictionary in the making: its keys are words."""

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

    def _words(self) -> None:
        self.append(_Words())

    def _words_of_stack(self) -> None:
        items, words = self.pop_mark(), _Words()
        for key, value in zip(items[::2], items[1::2], strict=True):
            words[key] = value
        self.append(words)

    def _set(self) -> None:
        refuse("a set")

    dispatch: ClassVar[dict[int, Any]] = {
        **_Slow.dispatch,
        pickle.EMPTY_DICT[0]: _words,
        pickle.DICT[0]: _words_of_stack,
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
    except Exception as error:  # a damaged pickle can fail in any way
        raise DataError(f"{where} is a damaged pickle ({type(error).__name__}); fetch it again.") from error
    if not isinstance(content, dict):
        raise DataError(f"{where} holds no dictionary; fetch the official file.")
    result = {}
    for key, value in content.items():
        name = key.decode("latin-1") if isinstance(key, bytes) else key
        result[name] = getattr(value, "value", None) if isinstance(value, Array) else value
    return result
