"""The share of a pool that does not belong."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.evaluate import foreign_share


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
def test_the_share_of_small_p_values(share):
    random, size = np.random.default_rng(0), 20_000
    p = np.where(random.random(size) < share, 0.05 * random.random(size), random.random(size))
    assert foreign_share(1 - p) == pytest.approx(share, abs=0.025)


def test_a_pool_that_looks_more_than_familiar_has_none():
    assert foreign_share(np.full(10, 0.1)) == 0.0


def test_a_pool_that_is_all_foreign():
    assert foreign_share(np.full(10, 0.99)) == 1.0


@pytest.mark.parametrize("scores", [np.full(10, 0.5), np.empty(0)])
def test_ignorance_is_not_a_share(scores):
    assert foreign_share(scores) is None
