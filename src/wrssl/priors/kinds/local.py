"""The narrow kernel: as wide as the reference is dense.

One width does not fit all data. In fifty columns everybody is about equally far from everybody, and a kernel that falls
within that distance, g = 1 in the units of ``kernel.py``, is narrow already. Two moons in the plane have structure at a
tenth of it. What tells the two apart is how near neighbours are: with r² the median over the references of the squared
distance to the k-th nearest other,

    g = max(1, 2d · 0.4 / r²),    k = √n / 2,

rounded to a power of 2. All references decide about it, those of the fold as well, so that the folds have the same
features and a large pool has to be mapped once; no score of theirs takes part.
"""

from __future__ import annotations

import math

import numpy as np

from wrssl.priors.kinds.kernel import kernel
from wrssl.priors.samples import Matrix, Samples, Score

FALL = 0.4
ASKED = 1000  # references whose neighbours are looked for; the median of more would be the same
NARROWEST = 10  # g at most 2 to this: where references repeat, neighbours are at distance 0


def local_width(rows: Matrix, seed: int) -> float:
    """The g of these references."""
    from sklearn.neighbors import NearestNeighbors

    n, columns = rows.shape
    near = max(1, round(math.sqrt(n) / 2))
    asked = rows[np.random.default_rng(seed).permutation(n)[:ASKED]]
    # One more than k: the nearest of a reference is itself.
    search = NearestNeighbors(n_neighbors=min(near + 1, n), algorithm="brute").fit(rows)
    r = float(np.median(search.kneighbors(asked)[0][:, -1]))
    g = 2 * columns * FALL / max(r * r, 1e-12)
    return float(2.0 ** np.clip(round(math.log2(g)), 0, NARROWEST))


def local_kernel(samples: Samples, seed: int) -> Score:
    """The kind whose width follows from the reference."""
    return kernel(local_width(samples.everybody, seed))(samples, seed)
