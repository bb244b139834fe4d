"""Energy: sees foreign rows by the missing conviction of a classifier of the reference's classes.

    score(x) = log Σ_c exp z_c(x),   z = a ridge multinomial regression on the reference

(Liu, Wang, Owens, Li, 2020: "Energy-based Out-of-distribution Detection"). It never looks at the pool, so it is the one
kind that does not mind a pool with few members. With principal components it is weak; with the features of a trained
network it is what its authors had in mind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.classes import classifier
from wrssl.priors.samples import Matrix, Samples, Score


def energy(samples: Samples, seed: int) -> Score:
    """Minus the energy; a constant where there is one class only."""
    logits = classifier(samples, int(samples.labels.max()) + 1)

    def score(rows: Matrix) -> NDArray[np.float64]:
        value: NDArray[np.float64] = np.logaddexp.reduce(logits(rows), axis=1)
        return value

    return score
