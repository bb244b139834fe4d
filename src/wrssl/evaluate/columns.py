"""Columns of a table with a row per pool member, each in few bytes: what is said of ten million has to fit in memory.

Whole numbers get the smallest type that holds them, not below int16, so that a sum or a difference of a few does not
overflow. Words are codes into a list of the words (``pandas.Categorical``), which compare, sort and print as the words
do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

WHOLE = (np.int16, np.int32, np.int64, np.uint64)


def smallest_whole(low: int, high: int, at_least: type[np.integer[Any]] = np.int16) -> np.dtype[Any]:
    """The first of ``at_least``, int16, int32, int64, uint64 that holds both numbers."""
    kinds: tuple[type[np.integer[Any]], ...] = (at_least, *WHOLE)
    fits = (kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return np.dtype(next(fits))


def identifiers(ids: Sequence[Any] | NDArray[Any] | None, size: int) -> Any:
    """What pandas can take without an object per member, if the ids are numbers in a row or an array."""
    numbers = range(size) if ids is None else ids
    if isinstance(numbers, range):
        ends = (numbers[0], numbers[-1]) if numbers else (0, 0)
        kind = smallest_whole(min(ends), max(ends), np.int32)
        return np.arange(numbers.start, numbers.stop, numbers.step, dtype=kind)
    return numbers.copy() if isinstance(numbers, np.ndarray) else list(numbers)


def whole_numbers(values: Tensor | None, size: int, at_least: type[np.signedinteger[Any]]) -> Any:
    """Whole numbers as a column; unknown ones as the nullable type of that width."""
    import pandas as pd

    if values is None:
        return pd.arrays.IntegerArray(np.zeros(size, dtype=at_least), np.ones(size, dtype=bool))
    if not len(values):
        return np.zeros(0, dtype=at_least)
    return values.numpy().astype(smallest_whole(int(values.min()), int(values.max()), at_least))


def coded(codes: NDArray[Any], words: NDArray[Any]) -> Any:
    """A column of words by their places in a list."""
    import pandas as pd

    return pd.Categorical.from_codes(codes, categories=pd.Index(words), validate=False)


@dataclass(frozen=True)
class LabelColumn:
    """The name of a class for every member, filled part by part.

    Attributes:
        names: of the classes.
        values: the names themselves, or their places where they are words.
    """

    names: NDArray[Any]
    values: NDArray[Any]

    def fill(self, rows: slice, indices: NDArray[np.int64]) -> None:
        """These members have the classes with these numbers."""
        self.values[rows] = indices if self.names.dtype.kind in "USO" else self.names[indices]

    def column(self) -> Any:
        """What pandas takes."""
        return coded(self.values, self.names) if self.names.dtype.kind in "USO" else self.values


def label_column(names: NDArray[Any], size: int) -> LabelColumn:
    """An empty column of classes with these names."""
    kind = names.dtype
    if kind.kind in "USO":
        kind = np.dtype(np.int8) if len(names) <= np.iinfo(np.int8).max else smallest_whole(0, len(names))
    elif kind.kind in "iu":
        kind = smallest_whole(int(names.min()), int(names.max()))
    return LabelColumn(names, np.empty(size, dtype=kind))
