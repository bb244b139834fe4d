"""Examples that were not in the pool are scored by the models that scored the pool."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.data import Projection, raw_rows
from wrssl.priors import fit as module
from wrssl.priors import fit_prior
from wrssl.priors.newcomers import NewcomerPrior


def samples(seed=0, pool=400):
    random = np.random.default_rng(seed)
    labels = np.tile([0, 1], 40)
    known = random.normal(size=(80, 6)) + 3.0 * labels[:, None]
    own = random.normal(size=(pool // 2, 6)) + 3.0 * random.integers(0, 2, (pool // 2, 1))
    foreign = random.normal(size=(pool - pool // 2, 6)) * 0.3 - 4.0
    rows = torch.from_numpy(np.r_[own, foreign]).float()
    return torch.from_numpy(known).float(), labels, rows


def newcomers(projection=None):
    known, labels, pool = samples()
    rows = (raw_rows(known), raw_rows(pool)) if projection is None else (projection(known), projection(pool))
    prior = fit_prior(rows[0], labels, rows[1], 7)
    return NewcomerPrior(prior.comparison, prior.known, prior.curve, projection), prior


def test_a_member_outside_the_sample_and_a_newcomer_are_scored_alike(monkeypatch):
    """With a sample smaller than the pool, the rest of the pool is scored as newcomers are."""
    monkeypatch.setattr(module, "POOL_ROWS", 100)
    known, labels, pool = samples()
    prior = fit_prior(known, labels, pool, 7)
    judge = NewcomerPrior(prior.comparison, prior.known, prior.curve, None)
    again = judge.prior(pool)
    random = np.random.default_rng(7)
    random.permutation(len(known))
    outside = np.setdiff1d(np.arange(len(pool)), random.permutation(len(pool))[:100])
    assert len(outside) == 300
    np.testing.assert_array_equal(again.scores[outside], prior.scores[outside])
    np.testing.assert_array_equal(again.p(outside), prior.p(outside))
    np.testing.assert_array_equal(again.weight(outside), prior.weight(outside))


def test_own_and_foreign_newcomers_are_told_apart():
    judge, _ = newcomers()
    random = np.random.default_rng(5)
    own = torch.from_numpy(random.normal(size=(200, 6)) + 3.0 * random.integers(0, 2, (200, 1))).float()
    foreign = torch.from_numpy(random.normal(size=(200, 6)) * 0.3 - 4.0).float()
    dropped = [float((judge.prior(x).p(slice(None)) <= 0.05).mean()) for x in (own, foreign)]
    assert dropped[0] <= 0.12
    assert dropped[1] >= 0.95


@pytest.mark.parametrize("projected", [False, True])
def test_stored_and_read_back_they_say_the_same(projected):
    _, _, pool = samples()
    projection = Projection.of(pool, torch.arange(len(pool))) if projected else None
    judge, _ = newcomers(projection)
    state = {name: value.clone() for name, value in judge.to_state().items()}
    back = NewcomerPrior.from_state(state, judge.comparison.kinds)
    x = torch.randn(30, 6, generator=torch.Generator().manual_seed(1))
    assert (back.projection is None) == (not projected)
    np.testing.assert_array_equal(back.prior(x).scores, judge.prior(x).scores)
    np.testing.assert_array_equal(back.prior(x).ood_score(slice(None)), judge.prior(x).ood_score(slice(None)))
