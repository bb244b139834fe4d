"""Quadratic: sees foreign rows whose spread or correlations differ, such as means of two rows."""

from __future__ import annotations

import numpy as np

from wrssl.priors.kinds.logistic import logistic
from wrssl.priors.samples import Matrix, Samples, Score

COLUMNS = 25  # products of the first columns only: 350 features, where fifty columns would have 1,325
RIDGE = 0.5  # strong, since there are more features than references


def products(rows: Matrix) -> Matrix:
    """(x_i)_i and (x_i x_j)_{i ≤ j} for the first columns."""
    x = rows[:, :COLUMNS]
    width = x.shape[1]
    found = np.empty((len(x), width + width * (width + 1) // 2), dtype=x.dtype)
    found[:, :width], place = x, width
    for first in range(width):  # slices: several times as fast as gathering the columns of all pairs
        np.multiply(x[:, first : first + 1], x[:, first:], out=found[:, place : (place := place + width - first)])
    return found


def quadratic(samples: Samples, seed: int) -> Score:
    """Logistic regression on products of pairs of columns."""
    return logistic(samples, products, RIDGE)
