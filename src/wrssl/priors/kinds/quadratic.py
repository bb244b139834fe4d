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
    first, second = np.triu_indices(x.shape[1])
    return np.concatenate([x, x[:, first] * x[:, second]], axis=1)


def quadratic(samples: Samples, seed: int) -> Score:
    """Logistic regression on products of pairs of columns."""
    return logistic(samples, products, RIDGE)
