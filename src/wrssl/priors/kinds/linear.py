"""Linear: sees foreign rows whose mean is elsewhere. The strongest kind from few references."""

from __future__ import annotations

from wrssl.priors.kinds.logistic import logistic
from wrssl.priors.samples import Matrix, Samples, Score

RIDGE = 2e-3


def themselves(rows: Matrix) -> Matrix:
    """The rows."""
    return rows


def linear(samples: Samples, seed: int) -> Score:
    """Logistic regression on the rows themselves."""
    return logistic(samples, themselves, RIDGE)
