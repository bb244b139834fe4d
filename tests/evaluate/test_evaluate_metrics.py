"""AUROC and AUPR against scikit-learn, FPR at a TPR against its definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from wrssl.evaluate import auroc, average_precision, fpr_at_tpr


@pytest.mark.parametrize("values", [2, 5, 10**6], ids=["binary", "ties", "distinct"])
@pytest.mark.parametrize("seed", range(4))
def test_auroc_equals_scikit_learn(values, seed):
    rng = np.random.default_rng(seed)
    positive = rng.random(60) < 0.3
    score = rng.integers(0, values, 60) / values + 0.2 * positive * (values > 2)
    assert auroc(score, positive) == pytest.approx(roc_auc_score(positive, score), abs=1e-12)
    assert auroc(-score, positive) == pytest.approx(1 - roc_auc_score(positive, score), abs=1e-12)


def test_auroc_by_hand():
    positive = np.array([True, True, False, False])
    assert auroc(np.array([3.0, 4.0, 1.0, 2.0]), positive) == 1.0
    assert auroc(np.array([1.0, 2.0, 3.0, 4.0]), positive) == 0.0
    assert auroc(np.array([7.0, 7.0, 7.0, 7.0]), positive) == 0.5
    assert auroc(np.array([1.0, 3.0, 1.0, 2.0]), positive) == (0.5 + 0 + 1 + 1) / 4


def test_auroc_takes_float32_and_integers():
    positive = np.array([1, 0, 1])
    assert auroc(np.array([3, 1, 2], dtype=np.float32), positive) == 1.0


@pytest.mark.parametrize("metric", [auroc, fpr_at_tpr])
@pytest.mark.parametrize("positive", [np.ones(3, bool), np.zeros(3, bool), np.zeros(0, bool)])
def test_one_group_alone_has_no_score(metric, positive):
    assert metric(np.arange(float(len(positive))), positive) is None


def brute_force(score, positive, tpr):
    """Try every score as threshold, the highest first, until enough of the positives are at or above it."""
    hits, others = score[positive], score[~positive]
    for threshold in sorted(set(hits), reverse=True):
        if Fraction(int((hits >= threshold).sum()), len(hits)) >= Fraction(str(tpr)):
            return (others >= threshold).mean()
    raise AssertionError("the lowest threshold catches all")


@pytest.mark.parametrize("tpr", [0.95, 0.8, 0.5, 1.0])
@pytest.mark.parametrize("values", [3, 10, 10**6])
def test_fpr_equals_its_definition(tpr, values):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        positive = rng.permutation(np.arange(70) < 20 + seed)
        score = rng.integers(0, values, 70) / values + 0.3 * positive * (values > 3)
        assert fpr_at_tpr(score, positive, tpr) == pytest.approx(brute_force(score, positive, tpr), abs=1e-15)


def test_fpr_at_95_counts_exactly_whatever_the_number_of_positives():
    """0.95·n must not be rounded up by one where it is a whole number: 20, 40, 60, …"""
    for n in range(1, 401):
        score = np.concatenate([np.arange(n, 0, -1.0), np.arange(n, 0, -1.0) + 0.25])
        positive = np.arange(2 * n) < n
        needed = -(-95 * n // 100)  # the smallest k with k/n ≥ 0.95
        assert fpr_at_tpr(score, positive) == pytest.approx(needed / n, abs=1e-12), n


def test_fpr_by_hand():
    score = np.array([9.0, 8.0, 7.0, 1.0, 8.5, 2.0, 1.0, 0.5])
    positive = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    assert fpr_at_tpr(score, positive, 0.75) == 0.25
    assert fpr_at_tpr(score, positive, 0.76) == 0.75, "a negative at the threshold counts"
    assert fpr_at_tpr(score, positive) == 0.75


@pytest.mark.parametrize("values", [2, 5, 10**6], ids=["binary", "ties", "distinct"])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_average_precision_equals_scikit_learn(values, share, seed):
    rng = np.random.default_rng(seed)
    positive = rng.permutation(np.arange(60) < share * 60)
    score = rng.integers(0, values, 60) / values + 0.2 * positive * (values > 2)
    for s in (score, -score):
        assert average_precision(s, positive) == pytest.approx(average_precision_score(positive, s), abs=1e-12)


def test_average_precision_by_hand():
    positive = np.array([True, True, False, False])
    assert average_precision(np.array([3.0, 4.0, 1.0, 2.0]), positive) == 1
    assert average_precision(np.array([1.0, 2.0, 3.0, 4.0]), positive) == pytest.approx((1 / 3 + 2 / 4) / 2)
    assert average_precision(np.array([4.0, 1.0, 1.0, 1.0]), positive) == pytest.approx((1 + 2 / 4) / 2)
    assert average_precision(np.full(4, 7.0), positive) == 0.5, "equal scores find the share of positives"
    assert average_precision(np.full(4, 7.0)[::-1], positive[::-1]) == 0.5, "in whatever order they come"


@pytest.mark.parametrize("metric", [auroc, average_precision, fpr_at_tpr])
def test_infinite_scores_are_scores_like_any_other(metric):
    """−∞ ties with −∞: their difference would be NaN. Finite numbers in the same order say the same."""
    positive = np.array([True, False, True, True, False, False, True, False])
    score = np.array([np.inf, np.inf, 1.0, 0.5, 0.5, -np.inf, -np.inf, -np.inf])
    for sign in (1, -1):
        assert metric(sign * score, positive) == metric(np.clip(sign * score, -9, 9), positive)


def test_a_score_that_is_no_number_gives_no_number():
    assert np.isnan(auroc(np.array([1.0, np.nan, 0.0]), np.array([True, False, False])))


def test_average_precision_takes_float32_and_integers():
    assert average_precision(np.array([3, 1, 2], dtype=np.float32), np.array([1, 0, 1])) == 1


@pytest.mark.parametrize("positive", [np.ones(3, bool), np.zeros(3, bool), np.zeros(0, bool)])
def test_one_group_alone_has_no_average_precision(positive):
    assert average_precision(np.arange(float(len(positive))), positive) is None
