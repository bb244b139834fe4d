"""Scores of references that neither a model nor the stack has seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.priors import fit_prior
from wrssl.priors.classes import offsets
from wrssl.priors.honest import honest_scores
from wrssl.priors.stack import stack


def scores(n=40, m=120, kinds=3, folds=4, seed=0):
    random = np.random.default_rng(seed)
    known, pool = random.normal(size=(n, kinds)) + 0.5, random.normal(size=(m, kinds))
    return known, pool, random.integers(0, 2, n), np.arange(n) % folds, np.arange(m) % folds


def test_by_hand():
    known, pool, classes, folds_known, folds_pool = scores()
    honest = honest_scores(known, pool, classes, folds_known, folds_pool, 2)
    row, fold = 6, 2
    others = folds_known != fold
    shares, shift = stack(known[others], pool[folds_pool != fold])
    off = offsets(known[others] @ shares + shift, classes[others], 2)
    assert folds_known[row] == fold
    assert honest[row] == pytest.approx(known[row] @ shares + shift - off[classes[row]], abs=1e-12)


def test_what_is_in_a_fold_does_not_change_how_it_is_judged():
    known, pool, classes, folds_known, folds_pool = scores()
    before = honest_scores(known, pool, classes, folds_known, folds_pool, 2)
    changed, other_pool, here = known.copy(), pool.copy(), folds_known == 1
    changed[here] *= -3
    changed[5] = known[5]  # this one stays, its company does not
    other_pool[folds_pool == 1] += 10
    after = honest_scores(changed, other_pool, classes, folds_known, folds_pool, 2)
    assert folds_known[5] == 1
    assert after[5] == before[5]
    assert not np.array_equal(after[~here], before[~here])


def test_few_references_and_a_clean_pool_keep_the_promised_rate():
    """The same distribution twice, 40 references in 30 dimensions: 5 % of the members may seem foreign."""
    dropped = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        scale = np.linspace(3, 0.3, 30)
        rows = torch.from_numpy(random.normal(size=(340, 30)) * scale).float()
        prior = fit_prior(rows[:40], np.arange(40) % 2, rows[40:], seed)
        dropped.append((prior.p(slice(None)) <= 0.05).mean())
    assert np.mean(dropped) <= 0.06
