"""Kernel: sees foreign rows by what lies around them, wherever that is.

The Gaussian kernel exp(−γ‖x − x'‖²) by random Fourier features (Rahimi, Recht, 2007):

    φ(x) = √(2/D) cos(Ωx + c),   Ω ~ N(0, 2γ),   c ~ U[0, 2π],   γ = g / (2d).

Columns have variance 1, so two random rows are 2d apart (squared), and g = 1 lets the kernel fall to 1/e there.
"""

from __future__ import annotations

import numpy as np

from wrssl.priors.kinds.logistic import logistic
from wrssl.priors.samples import Kind, Samples, Score

FEATURES = 500
RIDGE = 0.08  # of features that logistic() brings to variance 1


def kernel(width: float) -> Kind:
    """The kind with g = ``width``."""

    def fit(samples: Samples, seed: int) -> Score:
        columns = samples.known.shape[1]
        random = np.random.default_rng(seed)
        omega = random.standard_normal((columns, FEATURES), dtype=np.float32) * np.float32((width / columns) ** 0.5)
        shift = random.uniform(0, 2 * np.pi, FEATURES).astype(np.float32)  # a NumPy generator  # nosec B311
        return logistic(samples, lambda rows: np.cos(rows @ omega + shift), RIDGE)

    return fit
