"""p-values by loops and by simulation; weights by the min-max formula of isotonic regression and by scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from wrssl.priors.calibrate import CAP, WeightCurve, conformal_p, smooth_p, weight_curve


@pytest.mark.parametrize("values", [3, 10**6], ids=["ties", "distinct"])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_p_by_loops(values, n):
    rng = np.random.default_rng(n)
    known, score = rng.integers(0, values, n) / 7, rng.integers(-1, values + 1, 60) / 7
    expected = [(1 + sum(k <= s for k in known)) / (n + 1) for s in score]
    assert conformal_p(score, known).tolist() == expected


def test_p_without_a_reference_is_one():
    assert conformal_p(np.arange(3.0), np.zeros(0)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("values", [4, None], ids=["ties", "distinct"])
def test_a_member_that_belongs_is_rarely_dropped(values):
    """P(p ≤ a) ≤ a over 4,000 draws of 19 references and one member; without ties it is a, where 20 a is whole."""
    rng, draws = np.random.default_rng(0), 4000
    scores = rng.standard_normal((draws, 20)) if values is None else rng.integers(0, values, (draws, 20)) / 1.0
    p = np.array([conformal_p(row[:1], row[1:])[0] for row in scores])
    for a in (0.05, 0.1, 0.2, 0.5):
        error = 4 * math.sqrt(a * (1 - a) / draws)
        assert (p <= a).mean() <= a + error
        if values is None:
            assert (p <= a).mean() >= a - error


@pytest.mark.parametrize(("rate", "fewest"), [(0.05, 19), (0.1, 9), (0.01, 99), (0.5, 1)])
def test_too_few_references_drop_nobody(rate, fewest):
    lowest = np.array([-1e9])
    for n in range(fewest):
        assert conformal_p(lowest, np.arange(float(n)))[0] > rate
    assert conformal_p(lowest, np.arange(float(fewest)))[0] <= rate


def test_smooth_p_by_hand():
    known = np.array([4.0, 0.0, 2.0])  # nodes at 0, 2, 4 with ¼, ½, ¾
    score = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.5, 4.0, 9.0])
    expected = [math.exp(-1) / 4, 0.25, 0.3125, 0.375, 0.5, 0.6875, 0.75, 0.75]
    assert smooth_p(score, known) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "values",
    [
        None,
        pytest.param(
            3,
            marks=pytest.mark.xfail(
                strict=True, raises=AssertionError, reason="k equal references lift the line by k steps"
            ),
        ),
    ],
    ids=["distinct", "ties"],
)
@pytest.mark.parametrize("n", [2, 12, 50])
def test_smooth_p_is_never_above_p(values, n):
    rng = np.random.default_rng(n)
    known = rng.standard_normal(n) if values is None else np.arange(n) % min(values, n - 1) + 0.0
    score = np.r_[rng.normal(0.5, 2, 500), known, known - 1e-9, known + 1e-9]
    smooth = smooth_p(score, known)
    assert (smooth <= conformal_p(score, known) + 1e-12).all()
    assert (smooth > 0).all()
    assert (smooth <= 1).all()


def test_smooth_p_keeps_the_order_of_members():
    rng = np.random.default_rng(1)
    known = rng.standard_normal(15)
    score = np.sort(np.r_[rng.uniform(-9, known.max(), 300), known])
    smooth = smooth_p(score, known)
    assert (np.diff(smooth) > 0).all()
    assert len(np.unique(conformal_p(score, known))) <= 16, "which p does not"


def test_smooth_p_has_no_jump():
    known = np.random.default_rng(2).standard_normal(10)
    left, right = smooth_p(known - 1e-9, known), smooth_p(known + 1e-9, known)
    np.testing.assert_allclose(left, right, atol=1e-6)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="e^{−800} is 0, and 1 − e^{−40} is 1")
@pytest.mark.parametrize("distance", [40.0, 800.0])
def test_the_strangest_of_all_still_have_an_order(distance):
    """ood_score = 1 − smooth_p is documented to lie in [0, 1) and to have no ties."""
    score = np.array([-distance, -2 * distance])
    near, far = 1 - smooth_p(score, np.arange(5.0))
    assert near < far < 1


@pytest.mark.parametrize("n", [10, 500])
def test_equal_scores_belong(n):
    known, score = np.full(n, 0.3), np.full(7, 0.3)
    assert conformal_p(score, known).tolist() == [1.0] * 7
    assert 1 - smooth_p(score, known) == pytest.approx([1 / (n + 1)] * 7)
    assert weight_curve(known, score)(score) == pytest.approx([1.0] * 7)


def min_max(scores, values, weights):
    """Isotonic regression by its formula: the largest over a ≤ i of the smallest over b ≥ i of mean(a … b)."""
    distinct = np.unique(scores)
    w = np.array([weights[scores == s].sum() for s in distinct])
    y = np.array([(weights * values)[scores == s].sum() for s in distinct])
    count = len(distinct)
    mean = {(a, b): y[a : b + 1].sum() / w[a : b + 1].sum() for a in range(count) for b in range(a, count)}
    fitted = [max(min(mean[a, b] for b in range(i, count)) for a in range(i + 1)) for i in range(count)]
    return dict(zip(distinct.tolist(), fitted, strict=True))


def expected_weights(q_known, q):
    """w = min(1, ρ / mean_known ρ), where ρ = q/(1 − q), and ρ of the reference is cut at its quantile CAP."""
    odds = q_known / (1 - q_known)
    return np.minimum(1, q / (1 - q) / np.minimum(odds, np.quantile(odds, CAP)).mean())


@pytest.mark.parametrize("values", [None, 6], ids=["distinct", "ties"])
@pytest.mark.parametrize(("n", "m"), [(10, 25), (25, 12)])
def test_weights_by_the_formula_of_isotonic_regression(values, n, m):
    rng = np.random.default_rng(n)
    known, pool = rng.normal(0.7, 1, n), np.r_[rng.normal(0, 1.5, m - 1), 9.0]  # ρ is finite below the member at 9
    if values is not None:
        known, pool = np.round(known * 2), np.round(pool * 2)
    scores, member = np.r_[known, pool], np.r_[np.ones(n), np.zeros(m)]
    fitted = min_max(scores, member, np.r_[np.full(n, 1 / n), np.full(m, 1 / m)])
    q_known, q = (np.array([fitted[s] for s in part.tolist()]) for part in (known, scores))
    expected = expected_weights(q_known, q)
    assert expected.min() < 0.7, "an example in which everybody weighs 1 shows nothing"
    np.testing.assert_allclose(weight_curve(known, pool)(scores), expected, atol=1e-9)


@pytest.mark.parametrize("foreign", [0.0, 0.3, 0.8])
def test_weights_by_scikit_learn(foreign):
    rng = np.random.default_rng(4)
    known = rng.normal(1, 1, 300)
    pool = np.r_[rng.normal(1, 1, 700) - 2.5 * (rng.random(700) < foreign), 9.0]
    scores, member = np.r_[known, pool], np.arange(1001) < 300
    q = IsotonicRegression().fit(scores, member, np.where(member, 1 / 300, 1 / 701)).predict(scores)
    np.testing.assert_allclose(weight_curve(known, pool)(scores), expected_weights(q[:300], q), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_weights_increase_and_lie_between_0_and_1(seed):
    rng = np.random.default_rng(seed)
    curve = weight_curve(rng.normal(1, 1, 50), rng.normal(0, 2, 200))
    weights = curve(np.linspace(-20, 20, 2000))
    assert (np.diff(weights) >= 0).all()
    assert 0 <= weights[0] < weights[-1] <= 1


def test_a_curve_is_straight_between_nodes_and_constant_beyond():
    curve = WeightCurve(np.array([0.0, 2.0]), np.array([0.2, 0.6]))
    assert curve(np.array([-5.0, 0.0, 0.5, 2.0, 7.0])) == pytest.approx([0.2, 0.2, 0.3, 0.6, 0.6])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("m", [500, 2000])
def test_a_pool_like_the_reference_keeps_its_weight(seed, m):
    rng = np.random.default_rng(seed)
    pool = rng.standard_normal(m)
    assert weight_curve(rng.standard_normal(2000), pool)(pool).mean() > 0.85


@pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="above the best member lie 10 % of the references, and their ρ is 10⁹"
)
def test_a_small_pool_like_the_reference_keeps_its_weight():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        pool = rng.standard_normal(20)
        assert weight_curve(rng.standard_normal(1000), pool)(pool).mean() > 0.2, seed


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_two_groups_that_lie_apart_get_1_and_0(share):
    rng, m = np.random.default_rng(5), 1000
    own = np.arange(m) < share * m
    pool = np.where(own, 5.0, -5.0) + rng.standard_normal(m)
    weights = weight_curve(5 + rng.standard_normal(500), pool)(pool)
    assert weights[own].mean() > 0.85
    assert weights[~own].max() < 0.05


def test_a_pool_without_own_members_weighs_nothing():
    rng = np.random.default_rng(6)
    pool = rng.standard_normal(200) - 20
    assert weight_curve(rng.standard_normal(100), pool)(pool).max() < 1e-6
