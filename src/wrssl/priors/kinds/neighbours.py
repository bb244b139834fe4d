"""Neighbours: sees foreign rows by the densities of the two samples around them.

    score(x) = log( mean distance to the k nearest of the pool / mean distance to the k nearest of the reference )

which grows with the ratio of the densities; k is a tenth of √n of each sample, at least 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.samples import Matrix, Samples, Score


def neighbours(samples: Samples, seed: int) -> Score:
    """The ratio of two nearest-neighbour distances."""
    from sklearn.neighbors import NearestNeighbors

    searches = [
        NearestNeighbors(n_neighbors=_count(len(part)), algorithm="brute").fit(part)
        for part in (samples.known, samples.pool)
    ]

    def score(rows: Matrix) -> NDArray[np.float64]:
        to_known, to_pool = (search.kneighbors(rows)[0].mean(1).astype(np.float64) for search in searches)
        tiny = np.finfo(np.float32).tiny
        ratio: NDArray[np.float64] = np.log(np.maximum(to_pool, tiny)) - np.log(np.maximum(to_known, tiny))
        return ratio

    return score


def _count(rows: int) -> int:
    return min(rows, max(1, round(0.1 * math.sqrt(rows))))
