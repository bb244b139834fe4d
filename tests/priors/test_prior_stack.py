"""The stack against its objective, minimized without a gradient; scores of references that took no part in it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import torch

from wrssl.priors import fit_prior
from wrssl.priors.classes import offsets
from wrssl.priors.stack import log_loss, nested_scores, stack

PULL = 10.0  # κ, as documented


def scores(n, m, effects, seed):
    """A column per effect: the reference is that far above the pool; variance 1 over the pool."""
    rng = np.random.default_rng(seed)
    known, pool = rng.standard_normal((n, len(effects))), rng.standard_normal((m, len(effects)))
    mean, deviation = pool.mean(0), pool.std(0)
    return (known + np.array(effects) - mean) / deviation, (pool - mean) / deviation


def formula(u, known, pool):
    """n · [mean log(1 + e^{−z}) + mean log(1 + e^{z})] + κ Σ (v − 1/K)², z = Sv + b, as the docstring says."""
    v, b = u[:-1], u[-1]
    fit = np.log1p(np.exp(-(known @ v + b))).mean() + np.log1p(np.exp(pool @ v + b)).mean()
    return len(known) * fit + PULL * ((v - 1 / len(v)) ** 2).sum()


def test_log_loss_by_loops():
    known, pool = np.array([0.5, -2.0, 3.0]), np.array([-1.0, 4.0])
    expected = sum(np.log(1 + np.exp(-z)) for z in known) / 6 + sum(np.log(1 + np.exp(z)) for z in pool) / 4
    assert log_loss(known, pool) == pytest.approx(expected, abs=1e-12)
    assert log_loss(np.zeros(3), np.zeros(5)) == pytest.approx(np.log(2), abs=1e-12)
    assert log_loss(np.array([1e5]), np.array([1e5])) == pytest.approx(5e4), "no overflow"


@pytest.mark.parametrize(("n", "m"), [(12, 90), (300, 40)])
def test_value_and_gradient_are_those_of_the_formula(monkeypatch, n, m):
    handed = []

    def spy(function, start, **options):
        handed.append(function)
        return real(function, start, **options)

    real = scipy.optimize.minimize
    monkeypatch.setattr("scipy.optimize.minimize", spy)
    known, pool = scores(n, m, [1.0, 0.3, -0.5], seed=1)
    stack(known, pool)
    [function] = handed
    rng = np.random.default_rng(2)
    for _ in range(5):
        u = rng.standard_normal(4)
        value, slope = function(u)
        assert value == pytest.approx(formula(u, known, pool), rel=1e-12)
        steps = 1e-5 * np.eye(4)
        differences = [(formula(u + e, known, pool) - formula(u - e, known, pool)) / 2e-5 for e in steps]
        np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("effects", [[1.0, 0.4], [1.5, -1.0], [0.0, 0.0], [-1.0, -1.0]])
@pytest.mark.parametrize(("n", "m"), [(20, 200), (400, 100)])
def test_the_optimum_without_a_gradient(effects, n, m):
    known, pool = scores(n, m, effects, seed=3)
    found = scipy.optimize.minimize(
        formula,
        np.array([0.3, 0.3, 0.1]),
        (known, pool),
        method="Nelder-Mead",
        bounds=[(0, None), (0, None), (None, None)],
        options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 5000},
    )
    shares, shift = stack(known, pool)
    np.testing.assert_allclose([*shares, shift], found.x, atol=2e-3)
    assert formula(np.r_[shares, shift], known, pool) <= found.fun + 1e-4


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [10, 100, 3000])
def test_shares_are_never_negative(n, seed):
    effects = np.random.default_rng(seed).normal(0, 1, 4)
    shares, _ = stack(*scores(n, 500, effects, seed))
    assert shares.shape == (4,)
    assert (shares >= 0).all()


def test_a_column_of_noise_loses_its_share_with_the_number_of_references():
    """Near 0 the loss is n v²/4, so that κ leaves v = ½/(1 + n/40) of a share of ½."""
    few, many = (stack(*scores(n, 4000, [1.0, 0.0], seed=4))[0] for n in (4, 4000))
    assert few[1] == pytest.approx(0.5, abs=0.1)
    assert many[1] < 0.03
    assert many[0] == pytest.approx(1, abs=0.15), "a normal shift of 1 is a log-odds of slope 1"


def test_a_reversed_column_gets_nothing():
    for n in (60, 2000):
        shares, _ = stack(*scores(n, 2000, [1.0, -1.0], seed=5))
        assert shares[1] == 0
        assert shares[0] > 0.5


def test_two_copies_of_a_column_share_alike():
    known, pool = scores(200, 300, [1.0], seed=6)
    shares, _ = stack(np.repeat(known, 2, axis=1), np.repeat(pool, 2, axis=1))
    assert shares[0] == pytest.approx(shares[1], abs=1e-4)


def test_wild_scores_give_finite_shares():
    known, pool = scores(50, 100, [1.0, 0.5], seed=7)
    known[0] = 1e12, -1e12
    shares, shift = stack(known, pool)
    assert np.isfinite([*shares, shift]).all()


def by_fold(n=40, m=120, kinds=3, folds=4, seed=0):
    random = np.random.default_rng(seed)
    known, pool = random.normal(size=(n, kinds)) + 0.5, random.normal(size=(m, kinds))
    return known, pool, random.integers(0, 2, n), np.arange(n) % folds, np.arange(m) % folds


def test_nested_scores_by_hand():
    known, pool, classes, folds_known, folds_pool = by_fold()
    nested = nested_scores(known, pool, classes, folds_known, folds_pool, 2)
    row, fold = 6, 2
    others = folds_known != fold
    shares, shift = stack(known[others], pool[folds_pool != fold])
    off = offsets(known[others] @ shares + shift, classes[others], 2)
    assert folds_known[row] == fold
    assert nested[row] == pytest.approx(known[row] @ shares + shift - off[classes[row]], abs=1e-12)


def test_the_stack_of_a_fold_does_not_depend_on_it():
    known, pool, classes, folds_known, folds_pool = by_fold()
    before = nested_scores(known, pool, classes, folds_known, folds_pool, 2)
    changed, other_pool, here = known.copy(), pool.copy(), folds_known == 1
    changed[here] *= -3
    changed[5] = known[5]  # this one stays, the rest of its fold does not
    other_pool[folds_pool == 1] += 10
    after = nested_scores(changed, other_pool, classes, folds_known, folds_pool, 2)
    assert folds_known[5] == 1
    assert after[5] == before[5]
    assert not np.array_equal(after[~here], before[~here])


def test_few_references_and_a_clean_pool_keep_the_guaranteed_rate():
    """The same distribution twice, 40 references in 30 dimensions: 5 % of the members may seem foreign."""
    dropped = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        scale = np.linspace(3, 0.3, 30)
        rows = torch.from_numpy(random.normal(size=(340, 30)) * scale).float()
        prior = fit_prior(rows[:40], np.arange(40) % 2, rows[40:], seed)
        dropped.append((prior.p(slice(None)) <= 0.05).mean())
    assert np.mean(dropped) <= 0.06
