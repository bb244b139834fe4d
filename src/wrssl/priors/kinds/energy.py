"""Energy: sees foreign rows by the missing conviction of a classifier of the reference's classes.

    score(x) = log Σ_c exp z_c(x),   z = a ridge multinomial regression on the reference

(Liu, Wang, Owens, Li, 2020: "Energy-based Out-of-distribution Detection"). It never looks at the pool, so it is the one
kind that does not mind a pool with few members. With principal components it is weak; with the features of a trained
network it is what its authors had in mind.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from wrssl.priors.samples import Matrix, Samples, Score

RIDGE = 1e-2


def energy(samples: Samples, seed: int) -> Score:
    """Minus the energy."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    present = np.unique(samples.labels)
    if len(present) < 2:
        return lambda rows: np.zeros(len(rows))
    model = LogisticRegression(C=1 / (RIDGE * len(samples.known)), max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(samples.known, samples.labels)

    def score(rows: Matrix) -> NDArray[np.float64]:
        z = model.decision_function(rows).astype(np.float64)
        both = np.stack([-z / 2, z / 2], axis=1) if z.ndim == 1 else z
        value: NDArray[np.float64] = logsumexp(both, axis=1)
        return value

    return score
