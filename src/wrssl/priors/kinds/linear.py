"""Linear: sees foreign rows whose mean is elsewhere. The strongest kind from few references."""

from __future__ import annotations

from wrssl.priors.kinds.logistic import logistic
from wrssl.priors.samples import Samples, Score

RIDGE = 2e-3


def linear(samples: Samples, seed: int) -> Score:
    """Logistic regression on the rows themselves."""
    return logistic(samples, lambda rows: rows, RIDGE)
