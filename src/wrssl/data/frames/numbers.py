"""A column of numbers, booleans or dates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wrssl.data.frames.kinds import BOOLEAN, TIME, Name, numbers_of, times_of
from wrssl.data.frames.scale import measure, standardise

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class NumberColumn:
    """One scaled value, and where cells were missing also whether this one is.

    Attributes:
        name: of the column.
        kind: ``number``, ``boolean`` or ``time``.
        center: m; 0 for booleans, which stay 0 and 1.
        scale: s; 1 for booleans.
        fill: what stands for a missing cell: the mean.
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
        scaled = values if self.kind == BOOLEAN else standardise(values, self.center, self.scale)
        return np.stack([np.where(absent, self.fill, scaled), absent], axis=1)[:, : 1 + self.missing]


def _values(cells: pd.Series, name: Name, kind: str) -> NDArray[np.float64]:
    return times_of(cells, name) if kind == TIME else numbers_of(cells, name)
