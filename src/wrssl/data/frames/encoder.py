"""Tables become arrays: numbers scaled, categories as 0/1 columns, missing cells marked."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wrssl.data.convert import Pairs, Rows
from wrssl.data.frames.columns import (
    CATEGORY,
    CategoryColumn,
    Name,
    NumberColumn,
    Numbers,
    kind_of,
    measure,
    standardize,
)
from wrssl.errors import DataError, OptionError

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1  # goes up whenever the same table would give other numbers
LIMIT = 50
Column: TypeAlias = NumberColumn | CategoryColumn


@dataclass(frozen=True)
class FrameEncoder:
    """Turns data frames into rows of float32; equal encoders make equal rows of equal tables.

    * Numbers are scaled by the labeled rows, see ``columns.py``; dates are seconds since 1970, scaled alike, durations
      are seconds. Booleans stay 0 and 1.
    * Text, categories and everything else become one 0/1 value per category.
    * Where a column has missing cells when the encoder is made, one more value marks them, and the cell gets the mean.
      An infinite number is missing.

    Columns are found by their names, in any order. Labels are never used.

    Attributes:
        columns: how each column is encoded.
    """

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, labeled: pd.DataFrame, pool: pd.DataFrame | None = None, limit: int = LIMIT) -> FrameEncoder:
        """Make an encoder.

        Args:
            labeled: the labeled rows.
            pool: the unlabeled rows, with the same columns.
            limit: how many categories of one column get a value of their own.
        """
        if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1:
            raise OptionError(f"limit counts categories and must be at least 1, so {limit!r} is not possible.")
        names = _names(labeled)
        if len(labeled) == 0 or not names:
            raise DataError("The labeled table is empty; give it at least one row and one column.")
        others = labeled.iloc[:0] if pool is None else pool
        _compare(names, _names(others))
        return cls(tuple(_fit(name, labeled[name], others[name], int(limit)) for name in names))

    def transform(self, frame: pd.DataFrame) -> NDArray[np.float32]:
        """The rows of a table with the same columns, shape ``(N, len(feature_names))``."""
        _compare([column.name for column in self.columns], _names(frame))
        return np.concatenate([column.encode(frame[column.name]) for column in self.columns], axis=1).astype(np.float32)

    @property
    def feature_names(self) -> list[str]:
        """What each number of a row stands for."""
        return [name for column in self.columns for name in column.feature_names]

    def to_json(self) -> dict[str, Any]:
        """Plain values that ``from_json`` takes."""
        return {"format": FORMAT, "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> FrameEncoder:
        """The encoder that ``to_json`` described; ``DataError`` for one that this version cannot represent."""
        try:
            if value["format"] != FORMAT:
                raise DataError(
                    f"The table was encoded by rules number {value['format']} and this version of wrssl has number "
                    f"{FORMAT}; use the version that made the model, or train again."
                )
            return cls(tuple(_restore(dict(column)) for column in value["columns"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                "This does not describe how a table was encoded; take what FrameEncoder.to_json returned."
            ) from error


def _fit(name: Name, labeled: pd.Series, pool: pd.Series, limit: int) -> Column:
    kind = kind_of((labeled, pool), name)
    if kind == CATEGORY:
        return CategoryColumn.fit(name, labeled, pool, limit)
    return NumberColumn.fit(name, kind, labeled, pool)


def _restore(fields: dict[str, Any]) -> Column:
    if fields["kind"] == CATEGORY:
        return CategoryColumn(**fields | {"values": tuple(fields["values"])})
    return NumberColumn(**fields)


def _names(frame: Any) -> list[Name]:
    """The names of the columns of a data frame, each of them once."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"A table must be a pandas data frame, not {type(frame).__name__}; wrap it in one.")
    names: list[Name] = frame.columns.tolist()
    strange = [name for name in names if not isinstance(name, (str, int))]
    if strange:
        raise DataError(f"The column name {strange[0]!r} is neither text nor a whole number; rename that column.")
    twice = frame.columns[frame.columns.duplicated()].tolist()
    if twice:
        raise DataError(f"There are several columns {twice[0]!r}; rename them so that each name occurs once.")
    return names


def _compare(expected: Sequence[Name], found: Sequence[Name]) -> None:
    """Both have the same columns; the order does not matter."""
    known, there = set(expected), set(found)
    missing, extra = [name for name in expected if name not in there], [name for name in found if name not in known]
    faults = [f"lacks the {_listed(missing)}"] * bool(missing) + [f"has the unknown {_listed(extra)}"] * bool(extra)
    if faults:
        raise DataError(f"A table {' and '.join(faults)}; give all tables the same columns.")


def _listed(names: Sequence[Name]) -> str:
    shown = ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")
    return f"{'column' if len(names) == 1 else 'columns'} {shown}"


@dataclass(frozen=True, eq=False)
class TableScale:
    """The scales of all columns of an array.

    Attributes:
        center: m, shape ``(F,)``.
        scale: s, shape ``(F,)``.
    """

    center: Numbers
    scale: Numbers

    @classmethod
    def fit(cls, labeled: Numbers, pool: Numbers) -> TableScale:
        """From the labeled rows ``(N, F)`` and the pool ``(M, F)``, which may have no rows."""
        pairs = [measure(labeled[:, column], pool[:, column]) for column in range(labeled.shape[1])]
        return cls(np.array([m for m, _ in pairs]), np.array([s for _, s in pairs]))

    def transform(self, table: Numbers) -> NDArray[np.float32]:
        """The scaled values, shape ``(N, F)``."""
        return standardize(table, self.center, self.scale).astype(np.float32)


def is_frame(value: object) -> bool:
    """Whether this is a pandas data frame; this does not load pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def encode_parts(labeled: Pairs, pool: Rows, *held: Pairs | None) -> tuple[FrameEncoder | None, list[Any]]:
    """The encoder and the encoded parts, where the labeled table is a data frame; else None and the parts as given.

    Args:
        labeled: ``(X, y)``.
        pool: the pool.
        held: ``(X, y)`` of the other parts, or None.
    """
    parts = [labeled, pool, *held]
    if not isinstance(labeled, (tuple, list)) or len(labeled) != 2 or not is_frame(labeled[0]):
        return None, parts
    pairs = [part for part in held if part is not None]
    if not is_frame(pool) or not all(isinstance(p, (tuple, list)) and len(p) == 2 and is_frame(p[0]) for p in pairs):
        raise DataError("The labeled rows are a data frame and another part is not; give all parts as data frames.")
    encoder = FrameEncoder.fit(labeled[0], pool)
    encoded = [None if part is None else (encoder.transform(part[0]), part[1]) for part in (labeled, *held)]
    return encoder, [encoded[0], encoder.transform(pool), *encoded[1:]]
