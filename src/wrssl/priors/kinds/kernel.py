"""Kernel: sees foreign rows by what lies around them, wherever that is.

The Gaussian kernel exp(−γ‖x − x'‖²) by random Fourier features (Rahimi, Recht, 2007):

    φ(x) = √(2/D) cos(Ωx + c),   Ω ~ N(0, 2γ),   c ~ U[0, 2π],   γ = g / (2d).

Columns have variance 1, so two random rows are 2d apart (squared), and g = 1 lets the kernel fall to 1/e there. That is
a narrow one in many columns, and a wide one in few: ``local.py`` looks at the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wrssl.priors.kinds.logistic import logistic
from wrssl.priors.samples import Kind, Matrix, Samples, Score

FEATURES = 500
RIDGE = 0.08  # of features that logistic() brings to variance 1


@dataclass(frozen=True)
class Fourier:
    """√(D/2) φ for rows with so many columns; equal arguments give equal features.

    Attributes:
        width: g.
        columns: d.
        seed: of Ω and c.
    """

    width: float
    columns: int
    seed: int

    @cached_property
    def _drawn(self) -> tuple[Matrix, Matrix]:
        random = np.random.default_rng(self.seed)
        spread = np.float32((self.width / self.columns) ** 0.5)
        omega = random.standard_normal((self.columns, FEATURES), dtype=np.float32) * spread
        shift = random.uniform(0, 2 * np.pi, FEATURES).astype(np.float32)  # a NumPy generator  # nosec B311
        return omega, shift

    def __call__(self, rows: Matrix) -> Matrix:
        """One row of features per row."""
        omega, shift = self._drawn
        angle: Matrix = rows @ omega
        angle += shift
        return np.cos(angle, out=angle)


def kernel(width: float) -> Kind:
    """The kind with g = ``width``."""

    def fit(samples: Samples, seed: int) -> Score:
        return logistic(samples, Fourier(width, samples.known.shape[1], seed), RIDGE)

    return fit
