"""Two coordinates per point, so that what is alike in the embedding is near in the picture.

The points are directions (``neighbors.py``). They are reduced to their first 50 principal components, and these are
laid out by t-SNE of scikit-learn (van der Maaten and Hinton, 2008), which starts at the first two. It was chosen by
looking at pictures, and by how often the nearest label in the picture has the same class and how many of the ten
nearest points in the embedding stay among the ten nearest (one draw each: 190 labels of 19 classes of grocery
photographs among 1,690 points | 200 labels of 20 classes of bank questions among 1,370):

    first two components     .18, .08  |  .45, .15      most classes lie on top of each other
    SpectralEmbedding        .51, .22  |  .79, .35      a few classes far out, the others pressed together
    t-SNE as below           .82, .55  |  .93, .64

It takes 1.4 | 1.0 seconds of one core. Few points are placed by their components alone.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

COMPONENTS = 50
FEWEST = 60  # points; t-SNE balances each point with 3 · PERPLEXITY others
PERPLEXITY, ANGLE, STEPS = 20, 0.8, 400
NEIGHBORS, PRINCIPAL = "neighbors", "components"  # how points were placed


def place(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """Coordinates (n, 2) in [0, 1], and how they were found; the same points give the same coordinates.

    Args:
        points: (n, d).
    """
    from threadpoolctl import threadpool_limits

    # One thread: in which order several add up is not fixed, and the steps of t-SNE enlarge the difference.
    with threadpool_limits(1):
        parts = components(points, COMPONENTS)
        way = NEIGHBORS if len(points) >= FEWEST and parts[:, 0].std() > 0 else PRINCIPAL
        return across(by_neighbors(parts) if way == NEIGHBORS else parts[:, :2]), way


def components(points: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """The first principal components, largest variance first, at least two columns: 0 where there is no variance.

    The sign of each is such that its largest coordinate is positive.
    """
    from scipy.linalg import eigh  # takes its time to import

    moved = points - points.mean(0)
    size = min(moved.shape)  # XᵀX and XXᵀ have the same eigenvalues; the smaller one is decomposed
    number = min(number, size)
    wide = moved.shape[1] > size
    values, vectors = eigh(moved @ moved.T if wide else moved.T @ moved, subset_by_index=[size - number, size - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    found = vectors * np.sqrt(np.maximum(values, 0.0)) if wide else moved @ vectors
    largest = found[np.abs(found).argmax(0), np.arange(number)]
    found = found * np.where(largest < 0, -1.0, 1.0)
    return found if number > 1 else np.pad(found, ((0, 0), (0, 1)))


def by_neighbors(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The layout by t-SNE of points that are given by their principal components."""
    from sklearn.manifold import TSNE  # takes its time to import

    layout = TSNE(
        n_components=2,
        perplexity=PERPLEXITY,
        angle=ANGLE,
        max_iter=STEPS,
        init=(1e-4 / parts[:, 0].std() * parts[:, :2]).astype(np.float32),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about points that are equal
        found: NDArray[np.float32] = layout.fit_transform(parts.astype(np.float32))
    return found.astype(np.float64)


def across(layout: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turned so that most of the variance is horizontal, moved to 0, and scaled so that the longer side is 1."""
    turned = components(layout, 2)
    turned -= turned.min(0)
    extent = float(turned.max())
    return turned / extent if extent > 0 else turned
