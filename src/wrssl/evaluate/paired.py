"""A confidence interval for a difference that was measured on repeated random splits of the same examples.

The splits share examples, so their differences d_1 … d_R are not independent and the usual standard error is too small.
With a correlation ρ between two splits (Nadeau, Bengio, 2003: "Inference for the generalization error")

    Var(mean d) = s² · (1/R + ρ/(1 − ρ)),

s² being the sample variance. They take ρ = n_test/(n_train + n_test), the share of the examples that is held out. But
two splits have little in common where few training examples are drawn from many: on average the share n_train/n of
them. So ρ here is the smaller of the two shares. The interval is that of Student's t with R − 1 degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval."""

    mean: float
    low: float
    high: float


def correlation(train: int, test: int, total: int) -> float:
    """ρ of two random splits of ``total`` examples with ``train`` in one part and ``test`` in another."""
    return min(test / (train + test), train / total)


def paired_interval(differences: ArrayLike, rho: float, level: float = 0.95) -> Interval:
    """The mean difference and its interval.

    Args:
        differences: one per split, at least two.
        rho: the correlation of two splits.
        level: of confidence.
    """
    from scipy.stats import t

    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError("an interval needs at least two differences")
    mean, variance = float(d.mean()), float(d.var(ddof=1))
    half = float(t.ppf(0.5 + level / 2, len(d) - 1)) * math.sqrt(variance * (1 / len(d) + rho / (1 - rho)))
    return Interval(mean, mean - half, mean + half)
