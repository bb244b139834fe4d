"""p-values by loops and by simulation; weights by the min-max formula of isotonic regression and by scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from wrssl.priors.calibrate import WeightCurve, belonging, conformal_p, ood_score, smooth_p, weight_curve


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
def test_too_few_references_drop_no_member(rate, fewest):
    lowest = np.array([-1e9])
    for n in range(fewest):
        assert conformal_p(lowest, np.arange(float(n)))[0] > rate
    assert conformal_p(lowest, np.arange(float(fewest)))[0] <= rate


def test_smooth_p_by_hand():
    known = np.array([4.0, 0.0, 2.0])  # nodes at 0, 2, 4 with ¼, ½, ¾
    score = np.array([-3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.5, 4.0, 9.0])
    expected = [1 / 16, 0.125, 0.25, 0.3125, 0.375, 0.5, 0.6875, 0.75, 0.75]
    assert smooth_p(score, known) == pytest.approx(expected, abs=1e-12)


def test_smooth_p_of_equal_references_by_hand():
    """They are one step of several: the line that leads to them rises by one only, behind them it goes on from p."""
    known = np.array([2.0, 0.0, 2.0, 0.0, 2.0, 5.0])
    score = np.array([-1.0, -1e-9, 0.0, 1.0, 2 - 1e-9, 2.0, 3.5, 5.0, 6.0])
    expected = np.array([0.5, 1, 2, 2.5, 3, 5, 5.5, 6, 6]) / 7
    assert smooth_p(score, known) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("values", [None, 3], ids=["distinct", "ties"])
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


@pytest.mark.parametrize("distance", [40.0, 800.0, 1e6])
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
    """w = min(1, ρ / typical ρ of the reference), ρ = q/(1 − q); returned with the two candidates for "typical".

    The mean has its largest tenth cut: by hand, the value at place 0.9 (n − 1) of the sorted list, and no quantile()
    of a number that the code under test may choose.
    """
    odds = np.sort(q_known / (1 - q_known))
    place = 0.9 * (len(odds) - 1)
    low, high = odds[math.floor(place)], odds[math.ceil(place)]
    cut = low + (place - math.floor(place)) * (high - low)
    mean, middle = sum(min(r, cut) for r in odds) / len(odds), np.median(odds)
    return np.minimum(1, q / (1 - q) / min(mean, middle)), mean, middle


def two_samples(n, m, foreign, seed, steps=None):
    """Scores of n references and m members, the given share of which is foreign; rounded to ``steps`` per unit."""
    rng = np.random.default_rng(seed)
    known, pool = rng.normal(1, 1, n), rng.normal(1, 1, m) - 2.5 * (rng.random(m) < foreign)
    return (known, pool) if steps is None else (np.round(known * steps), np.round(pool * steps))


@pytest.mark.parametrize("steps", [None, 2], ids=["distinct", "ties"])
@pytest.mark.parametrize(("n", "m"), [(10, 25), (25, 12)])
def test_weights_by_the_formula_of_isotonic_regression(steps, n, m):
    """One member more is added to the pool, where the highest score of all is."""
    known, pool = two_samples(n, m, 0.6, n, steps)
    scores = np.r_[known, pool, max(*known, *pool)]
    member = np.arange(n + m + 1) < n
    fitted = min_max(scores, member, np.where(member, 1 / n, 1 / (m + 1)))
    q_known, q = (np.array([fitted[s] for s in part.tolist()]) for part in (known, scores))
    expected, _, _ = expected_weights(q_known, q)
    assert expected.min() < 0.7, "an example in which every weight is 1 shows nothing"
    np.testing.assert_allclose(weight_curve(known, pool)(scores), expected, atol=1e-9)


@pytest.mark.parametrize(("foreign", "seed", "typical"), [(0.3, 4, "mean"), (0.8, 0, "mean"), (0.95, 0, "median")])
def test_weights_by_scikit_learn(foreign, seed, typical):
    """Examples for both sides of the minimum, so that neither can be left out."""
    n, m = 300, 700
    known, pool = two_samples(n, m, foreign, seed)
    scores, member = np.r_[known, pool, max(*known, *pool)], np.arange(n + m + 1) < n
    q = IsotonicRegression().fit(scores, member, np.where(member, 1 / n, 1 / (m + 1))).predict(scores)
    expected, mean, middle = expected_weights(q[:n], q)
    assert min(mean, middle) < 0.95 * max(mean, middle)
    assert (mean < middle) == (typical == "mean")
    np.testing.assert_allclose(weight_curve(known, pool)(scores), expected, atol=1e-9)


def test_the_mean_is_cut_at_its_largest_tenth(monkeypatch):
    """Ten levels with ten references each and fewer and fewer members, so that ρ is a ratio of counts."""
    members = np.array([1000, 900, 800, 700, 60, 55, 50, 45, 40, 35])
    known, pool = np.repeat(np.arange(10.0), 10), np.repeat(np.arange(10.0), members - (np.arange(10) == 9))
    ratio = 10 / 100 / (members / members.sum())
    q = ratio / (1 + ratio)
    expected, mean, middle = expected_weights(np.repeat(q, 10), q)
    assert mean < middle, "else the cut would not matter"
    assert weight_curve(known, pool)(np.arange(10.0)) == pytest.approx(expected, abs=1e-12)
    for cap in (0.89, 0.91, 1.0):
        monkeypatch.setattr("wrssl.priors.calibrate.CAP", cap)
        assert weight_curve(known, pool)(np.arange(10.0)) != pytest.approx(expected, abs=1e-4), cap


def test_the_largest_ratio_is_finite():
    """Above the best member there are references only; the member that is added there keeps ρ from being infinite."""
    known, pool = np.repeat([0.0, 1.0], [6, 4]), np.zeros(19)
    # With twenty members ρ is (6/10)/(19/20) at 0 and (4/10)/(1/20) at 1; the median is that at 0.
    assert weight_curve(known, pool).values == pytest.approx([1, 1])
    few = weight_curve(np.repeat([0.0, 1.0], [4, 6]), pool)
    low, high = 4 / 10 / (19 / 20), 6 / 10 / (1 / 20)
    assert few(np.array([0.0, 1.0])) == pytest.approx([low / (0.4 * low + 0.6 * high), 1])


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


def test_belonging_is_the_three_numbers():
    rng = np.random.default_rng(7)
    score, known = rng.standard_normal(30), rng.standard_normal(25)
    curve = weight_curve(known, rng.standard_normal(60))
    found = belonging(score, known, curve)
    assert found.p.tolist() == conformal_p(score, known).tolist()
    assert found.ood_score.tolist() == ood_score(score, known).tolist() == (1 - smooth_p(score, known)).tolist()
    assert found.weight.tolist() == curve(score).tolist()


def test_without_a_reference_an_ood_score_is_one_half():
    assert ood_score(np.arange(3.0), np.zeros(0)).tolist() == [0.5] * 3
