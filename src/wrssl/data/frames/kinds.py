"""What a column holds, and its cells as numbers or as texts. Missing cells are NaN among numbers, None among texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wrssl.api import DataError

if TYPE_CHECKING:
    import pandas as pd

Name: TypeAlias = str | int  # of a column
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

    A part without any value agrees with everything. Numbers and booleans together are numbers. Numbers here and text
    there are numbers where the text can be read as such, else categories; dates and text are dates. What one part
    declares as categorical is one in all parts.
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
    """The cells as numbers, durations in seconds, True as 1; what is infinite is missing."""
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
