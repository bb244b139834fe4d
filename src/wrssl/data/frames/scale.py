"""The scale of a column of numbers: by the labelled rows, which the pool cannot move.

A value x becomes, with mean m and standard deviation s,

    f(x) = 3 · tanh((x − m) / 3s),

which is about (x − m) / s for ordinary values and stays within −3 and 3 whatever comes.

m and s come from the **labelled** rows. They are few, so both are a little uncertain, but they are what the classifier
is about. A pool may contain anything: rows that are a hundred times as large would make s a hundred times as large,
and all that belongs would end up in one point. Only where the labelled rows cannot say (fewer than 5 values, or all
of them equal) do all rows decide. A column with one value everywhere becomes 0.

The bound is for the same reason. Where few labels say nothing about who belongs, a row that is a million standard
deviations away would rule the statistics of every batch that it is in. It still stands out at 3, and since f
increases, the order of the values is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST = 5  # labelled values that can say what the scale is: two or three cannot, and it costs accuracy
BOUND = 3.0  # standard deviations; no value is farther away
Numbers = NDArray[np.float64]


def measure(labeled: Numbers, pool: Numbers) -> tuple[float, float]:
    """Mean and standard deviation of a column.

    Args:
        labeled: the values of the labelled rows; those that are not finite are missing.
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


def standardise(values: Numbers, center: Numbers | float, scale: Numbers | float) -> Numbers:
    """f(x), and 0 where s = 0; a missing value stays NaN in both cases."""
    flat = np.equal(scale, 0)
    with np.errstate(over="ignore"):  # what leaves the range of a float is at the bound
        squeezed = BOUND * np.tanh((values - center) / np.where(flat, 1.0, scale) / BOUND)
    return np.where(flat & ~np.isnan(values), 0.0, squeezed)


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
        """From the labelled rows ``(N, F)`` and the pool ``(M, F)``, which may have no rows."""
        pairs = [measure(labeled[:, column], pool[:, column]) for column in range(labeled.shape[1])]
        return cls(np.array([m for m, _ in pairs]), np.array([s for _, s in pairs]))

    def transform(self, table: Numbers) -> NDArray[np.float32]:
        """The scaled values, shape ``(N, F)``."""
        return standardise(table, self.center, self.scale).astype(np.float32)
