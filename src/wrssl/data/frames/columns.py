"""A column of a table becomes numbers that a network can take: what it holds, its scale, its encoding.

A column holds numbers, booleans, dates or categories. Missing cells are NaN among numbers and None among texts.

The scale comes from the **labeled** rows, which the pool cannot move. A value x becomes, with mean m and standard
deviation s,

    f(x) = 3 · tanh((x − m) / 3s),

which is about (x − m) / s for ordinary values and stays within −3 and 3 for all values. The labeled rows are few, so m
and s are a little uncertain, but the labeled rows are what the classifier is about. A pool may contain anything: rows
that are a hundred times as large would make s a hundred times as large, and all that belongs would end up in one point.
Only where the labeled rows are not enough (fewer than 5 values, or all of them equal) are all rows used. A column with
one value everywhere becomes 0.

The bound has the same reason. A row that is a million standard deviations away would dominate the statistics of every
batch that it is in. It still stands out at 3, and since f increases, the order of the values is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wrssl.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Name: TypeAlias = str | int  # of a column
Numbers: TypeAlias = NDArray[np.float64]
FEWEST = 5  # labeled values that give the scale: two or three are not enough, and cost accuracy
BOUND = 3.0  # standard deviations; no value is farther away
NUMBER, BOOLEAN, TIME, CATEGORY, EMPTY = "number", "boolean", "time", "category", "empty"
_KINDS = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "timedelta", "timedelta64"), NUMBER),
    **dict.fromkeys(("datetime", "datetime64", "date", "period"), TIME),
    **dict.fromkeys(("string", "bytes", "categorical", "mixed", "mixed-integer"), CATEGORY),
    "boolean": BOOLEAN,
    "empty": EMPTY,
}


def kind_of(parts: Sequence[pd.Series], name: Name) -> str:
    """What the column holds, by its cells in all parts: one of the names above.

    A part without any value agrees with everything. Numbers and booleans together are numbers. Numbers in one part and
    text in another are numbers where the text can be read as such, else categories; dates and text are dates. What one
    part declares as categorical is categorical in all parts.
    """
    kinds = {_kind(part, name) for part in parts} - {EMPTY}
    if len(kinds) == 1:
        return kinds.pop()
    if not kinds or kinds == {NUMBER, BOOLEAN}:
        return NUMBER
    declared = any(part.dtype == "category" for part in parts)
    if kinds == {NUMBER, CATEGORY} and not declared and not any(_unreadable(part).any() for part in parts):
        return NUMBER
    if TIME in kinds and kinds != {TIME, CATEGORY}:
        raise DataError(
            f"Column {name!r} holds dates in one part and {NUMBER}s in another; convert it with pandas.to_datetime."
        )
    return TIME if TIME in kinds else CATEGORY


def _kind(part: pd.Series, name: Name) -> str:
    from pandas.api.types import infer_dtype

    if not bool(part.notna().any()):
        return EMPTY
    found = str(infer_dtype(part, skipna=True))
    if found not in _KINDS:
        raise DataError(f"Column {name!r} holds values of the type {found}; turn them into numbers, text or dates.")
    return _KINDS[found]


def numbers_of(column: pd.Series, name: Name) -> NDArray[np.float64]:
    """The cells as numbers, durations in seconds, True as 1; an infinite one is missing."""
    lost = _unreadable(column)
    if bool(lost.any()):
        raise DataError(
            f"Column {name!r} should hold numbers, but one cell is {column[lost].iloc[0]!r}; correct it or leave it "
            "empty."
        )
    values = _read(column).to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def _read(column: pd.Series) -> pd.Series:
    """As numbers, NaN where that is impossible."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype, is_timedelta64_dtype

    if is_timedelta64_dtype(column.dtype):
        return column.dt.total_seconds()
    if is_numeric_dtype(column.dtype):  # booleans among them
        return column
    return pd.to_numeric(column.astype(object), errors="coerce")


def _unreadable(column: pd.Series) -> pd.Series:
    return _read(column).isna() & column.notna()


def times_of(column: pd.Series, name: Name) -> NDArray[np.float64]:
    """The cells as seconds since 1970; times without a zone are taken as UTC."""
    import pandas as pd

    kind = _kind(column, name)
    if kind not in (TIME, CATEGORY, EMPTY):
        raise DataError(f"Column {name!r} should hold dates, but it holds {kind}s; convert it with pandas.to_datetime.")
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    text = {"format": "ISO8601"} if kind == CATEGORY else {}
    times = pd.to_datetime(column, utc=True, errors="coerce", **text)
    lost = times.isna() & column.notna()
    if bool(lost.any()):
        raise DataError(
            f"Column {name!r} should hold dates, but one cell is {column[lost].iloc[0]!r}; convert the column with "
            "pandas.to_datetime."
        )
    seconds = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(seconds.to_numpy(dtype=np.float64, na_value=np.nan))


def texts_of(column: pd.Series, name: Name) -> NDArray[np.object_]:
    """The cells as text, so that 1, 1.0 and "1" are the same category whatever the type of the column."""
    import pandas as pd

    try:
        codes, values = pd.factorize(column)  # a missing cell has the code −1, the last name below
    except TypeError as error:
        raise DataError(
            f"Column {name!r} holds lists or other objects with parts; turn them into numbers, text or dates."
        ) from error
    names = np.array([*map(_text, values), None], dtype=object)
    found: NDArray[np.object_] = names[codes]
    return found


def _text(value: Any) -> str:
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def measure(labeled: Numbers, pool: Numbers) -> tuple[float, float]:
    """Mean and standard deviation of a column.

    Args:
        labeled: the values of the labeled rows; those that are not finite are missing.
        pool: the values of the pool.

    Returns:
        m and s; s = 0 for a column with one value everywhere, and both are 0 for one without any.
    """
    own = labeled[np.isfinite(labeled)]
    if len(own) < FEWEST or own.min() == own.max():
        own = np.concatenate([own, pool[np.isfinite(pool)]])
    if len(own) == 0:
        return 0.0, 0.0
    if own.min() == own.max():  # their mean may be off by a rounding, and so their deviation
        return float(own[0]), 0.0
    unit = float(np.abs(own).max())  # squares of very large and very small numbers leave the range of a float
    ratio = own / unit
    return float(ratio.mean()) * unit, float(ratio.std()) * unit


def standardize(values: Numbers, center: Numbers | float, scale: Numbers | float) -> Numbers:
    """f(x), and 0 where s = 0; a missing value stays NaN in both cases."""
    flat = np.equal(scale, 0)
    with np.errstate(over="ignore"):  # a value beyond the range of a float is at the bound
        squeezed = BOUND * np.tanh((values - center) / np.where(flat, 1.0, scale) / BOUND)
    return np.where(flat & ~np.isnan(values), 0.0, squeezed)


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, booleans or dates: one scaled value, and where cells were missing also whether this one is.

    Attributes:
        name: of the column.
        kind: ``number``, ``boolean`` or ``time``.
        center: m; 0 for booleans, which stay 0 and 1.
        scale: s; 1 for booleans.
        fill: the encoded value of a missing cell, that of the mean.
        missing: whether there is a second value, 1 where the cell is missing.
    """

    name: Name
    kind: str
    center: float
    scale: float
    fill: float
    missing: bool

    @classmethod
    def fit(cls, name: Name, kind: str, labeled: pd.Series, pool: pd.Series) -> NumberColumn:
        """The scale comes from ``measure``."""
        own, others = _values(labeled, name, kind), _values(pool, name, kind)
        center, scale = measure(own, others)
        missing = bool(np.isnan(own).any() or np.isnan(others).any())
        if kind == BOOLEAN:
            return cls(name, kind, 0.0, 1.0, center, missing)
        return cls(name, kind, center, scale, 0.0, missing)

    @property
    def feature_names(self) -> list[str]:
        """One per value."""
        return [str(self.name), f"{self.name} (missing)"][: 1 + self.missing]

    def encode(self, cells: pd.Series) -> NDArray[np.float64]:
        """One row per cell."""
        values = _values(cells, self.name, self.kind)
        absent = np.isnan(values)
        scaled = values if self.kind == BOOLEAN else standardize(values, self.center, self.scale)
        return np.stack([np.where(absent, self.fill, scaled), absent], axis=1)[:, : 1 + self.missing]


def _values(cells: pd.Series, name: Name, kind: str) -> NDArray[np.float64]:
    return times_of(cells, name) if kind == TIME else numbers_of(cells, name)


@dataclass(frozen=True)
class CategoryColumn:
    """A column of text: a 0/1 value for each of the most frequent categories.

    A category that only the pool has gets one too: it may be rare among few labels, and if it is foreign, it is
    evidence of that. The labels choose first, so that a pool full of foreign categories cannot displace those that
    belong.

    Attributes:
        name: of the column.
        values: the categories with a value of their own, sorted.
        other: whether there is one for all other categories, as there were too many.
        missing: whether there is one for missing cells.
    """

    name: Name
    values: tuple[str, ...]
    other: bool
    missing: bool
    kind: str = CATEGORY

    @classmethod
    def fit(cls, name: Name, labeled: pd.Series, pool: pd.Series, limit: int) -> CategoryColumn:
        """At most ``limit`` categories: the most frequent among the labels, then the most frequent in the pool."""
        own, others = (Counter(texts_of(part, name).tolist()) for part in (labeled, pool))
        found = sorted((own.keys() | others.keys()) - {None}, key=lambda text: (-own[text], -others[text], text))
        return cls(name, tuple(sorted(found[:limit])), len(found) > limit, None in own or None in others)

    @property
    def feature_names(self) -> list[str]:
        """One per value."""
        extra = [f"{self.name} (other)"] * self.other + [f"{self.name} (missing)"] * self.missing
        return [*(f"{self.name}={text}" for text in self.values), *extra]

    def encode(self, cells: pd.Series) -> NDArray[np.float64]:
        """One row per cell; a new category counts as "other" where there is such a value, else as none."""
        texts = texts_of(cells, self.name).tolist()
        place = {text: number for number, text in enumerate(self.values)}
        at = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
        own = np.zeros((len(at), len(place)))
        own[at >= 0, at[at >= 0]] = 1.0
        absent = np.array([text is None for text in texts], dtype=bool)
        extra = [((at < 0) & ~absent)[:, None]] * self.other + [absent[:, None]] * self.missing
        return np.concatenate([own, *extra], axis=1)
