"""Two clouds with few labels, and a pool that holds a third, foreign one."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.estimator import WRSSLClassifier

LABELED, OWN, FOREIGN = 24, 30, 15


@pytest.fixture(scope="session")
def clouds() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y with −1 for the pool, and the true class of every row, 2 for foreign ones; the rows are mixed."""
    random = np.random.default_rng(0)
    truth = np.r_[np.arange(LABELED + OWN) % 2, np.full(FOREIGN, 2)]
    centers = np.array([[0, 0, 0], [4, 4, 0], [0, 12, 9]])
    X = centers[truth] + random.normal(size=(len(truth), 3))
    y = np.r_[truth[:LABELED], np.full(OWN + FOREIGN, -1)]
    order = random.permutation(len(y))
    return X[order] * [1, 1000, 0.001], y[order], truth[order]  # no two columns of the same size


@pytest.fixture(scope="session")
def fitted(clouds) -> WRSSLClassifier:
    X, y, _ = clouds
    return WRSSLClassifier(steps=40, random_state=0).fit(X, y)
