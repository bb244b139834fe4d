"""The two-sample classifier behind three of the kinds: ridge logistic regression on features of the rows.

    min_{β, b}  ½ mean_known log(1 + e^{−z}) + ½ mean_pool log(1 + e^{z}) + ρ/2 ‖β‖²,     z = βᵀφ(x) + b

with features φ of variance 1. Both samples count as one half whatever their sizes, so that z estimates the logarithm of
p_known(x)/p_pool(x).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.samples import Matrix, Samples, Score

ITERATIONS = 100  # of L-BFGS; a score that is not quite at its minimum is a score all the same


def logistic(samples: Samples, features: Callable[[Matrix], Matrix], ridge: float) -> Score:
    """The fitted z as a function of rows.

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

    def score(rows: Matrix) -> NDArray[np.float64]:
        z: NDArray[np.float64] = model.decision_function((features(rows) - centre) / scale).astype(np.float64)
        return z

    return score
