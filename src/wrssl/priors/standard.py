"""The units in which pool and reference are compared.

Column by column, with the variances s² of the pool and r² of the n references, which few of them know badly:

    x ↦ (x − mean of the pool) / min(s, √((n r² + κ s²)/(n + κ))).

The pool alone would hide what matters most: members that lie far away spread its columns until they are no more than
two deviations from everybody else. Where the pool is the narrower one, as with means of rows, its own deviation counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wrssl.priors.samples import Matrix

DOUBT = 10.0  # κ, in references


@dataclass(frozen=True)
class Standard:
    """(x − mean) / deviation, column by column, cut where a value is absurd."""

    mean: Matrix
    deviation: Matrix

    LIMIT = 20.0  # deviations: keeps the square of one wild column from drowning all others

    @classmethod
    def of(cls, known: Matrix, pool: Matrix) -> Standard:
        """Of these samples; a column with one value is left as it is."""
        wide = pool.var(0, dtype=np.float64)
        own = (len(known) * known.var(0, dtype=np.float64) + DOUBT * wide) / (len(known) + DOUBT)
        deviation = np.sqrt(np.minimum(wide, own))
        return cls(
            pool.mean(0, dtype=np.float64).astype(np.float32),
            np.where(deviation > 1e-12, deviation, 1.0).astype(np.float32),
        )

    def __call__(self, rows: Matrix) -> Matrix:
        """The rows in these units."""
        with np.errstate(over="ignore"):  # what overflows is cut as well
            scaled: Matrix = np.clip((rows - self.mean) / self.deviation, -self.LIMIT, self.LIMIT)
        return scaled
