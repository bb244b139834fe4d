"""The two-sample classifier behind three of the kinds: ridge logistic regression on features of the rows.

    min_{β, b}  ½ mean_known log(1 + e^{−z}) + ½ mean_pool log(1 + e^{z}) + ρ/2 ‖β‖²,     z = βᵀφ(x) + b

with features φ of variance 1. Both samples count as one half whatever their sizes, so that z estimates the logarithm of
p_known(x)/p_pool(x).

Scoring a pool is most of what a prior costs, and φ is most of scoring, so ``together`` computes it once for all fits
that have it in common: those of the folds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.samples import Matrix, Samples, Score

ITERATIONS = 100  # of L-BFGS; a score that is not quite at its minimum is a score all the same
BLOCK = 256  # rows
Features: TypeAlias = Callable[[Matrix], Matrix]


@dataclass(frozen=True)
class LogisticScore:
    """The fitted z as a function of rows.

    Attributes:
        features: φ, before it is brought to variance 1; equal ones give equal features.
        centre: what is subtracted from it.
        scale: what it is then divided by.
        slope: β, as one row.
        intercept: b.
    """

    features: Features
    centre: Matrix
    scale: Matrix
    slope: Matrix
    intercept: Matrix

    def __call__(self, rows: Matrix) -> NDArray[np.float64]:
        """The z of these rows."""
        return self.of_features(self.features(rows))

    def of_features(self, phi: Matrix) -> NDArray[np.float64]:
        """The z of rows with these features, which are left as they are."""
        scaled = np.empty(phi.shape, np.result_type(phi, self.centre))
        for start in range(0, len(phi), BLOCK):  # what was subtracted is still in the cache when it is divided
            part = scaled[start : start + BLOCK]
            np.subtract(phi[start : start + BLOCK], self.centre, out=part)
            np.divide(part, self.scale, out=part)
        z: NDArray[np.float64] = (scaled @ self.slope.T + self.intercept).reshape(-1).astype(np.float64)
        return z


def together(scores: Sequence[Score], rows: Matrix) -> list[NDArray[np.float64]]:
    """What each of these scores says of the rows; features that one shares with the one before are computed once."""
    said, last, phi = list[NDArray[np.float64]](), None, rows
    for score in scores:
        if not isinstance(score, LogisticScore):
            said.append(score(rows))
            continue
        if score.features != last:
            last, phi = score.features, score.features(rows)
        said.append(score.of_features(phi))
    return said


def logistic(samples: Samples, features: Features, ridge: float) -> LogisticScore:
    """Fit z.

    Args:
        samples: rows of the reference and of the pool.
        features: φ, before it is brought to variance 1.
        ridge: ρ.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    phi = features(np.concatenate([samples.known, samples.pool]))
    centre, scale = phi.mean(0), phi.std(0)
    scale[scale < 1e-6] = 1.0  # a feature with one value says nothing
    member = np.r_[np.ones(len(samples.known)), np.zeros(len(samples.pool))]
    # sklearn sums the losses, with "balanced" class weights that add up to the number of rows.
    model = LogisticRegression(C=1 / (ridge * len(phi)), class_weight="balanced", max_iter=ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit((phi - centre) / scale, member)
    return LogisticScore(features, centre, scale, model.coef_, model.intercept_)
