"""The interval for differences on overlapping splits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from wrssl.evaluate import correlation, paired_interval


def test_independent_differences_get_the_interval_of_the_t_test():
    d = np.array([0.02, -0.01, 0.05, 0.03])
    found = paired_interval(d, 0.0)
    low, high = stats.ttest_1samp(d, 0.0).confidence_interval(0.95)
    assert found.mean == pytest.approx(d.mean(), abs=1e-15)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


def test_the_correction_of_nadeau_and_bengio():
    d = np.array([0.02, -0.01, 0.05, 0.03, 0.0])
    train, test = 60, 30
    found = paired_interval(d, correlation(train, test, train + test), level=0.9)
    half = stats.t.ppf(0.95, 4) * np.sqrt(d.var(ddof=1) * (1 / 5 + test / train))
    assert found.high - found.mean == pytest.approx(half, rel=1e-12)
    assert found.mean - found.low == pytest.approx(half, rel=1e-12)


def test_few_training_examples_out_of_many_have_little_in_common():
    assert correlation(100, 5000, 10_100) == pytest.approx(100 / 10_100)
    assert correlation(60, 30, 90) == pytest.approx(1 / 3)


@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_the_interval_covers_as_often_as_it_says(rho):
    """Equally correlated normal differences: the truth is inside in 95 % of the cases."""
    random = np.random.default_rng(0)
    rounds, repeats, truth = 4000, 5, 0.3
    common = random.normal(size=(rounds, 1))
    d = truth + np.sqrt(rho) * common + np.sqrt(1 - rho) * random.normal(size=(rounds, repeats))
    inside = [found.low <= truth <= found.high for found in (paired_interval(row, rho) for row in d)]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.012)


def test_one_difference_has_no_interval():
    with pytest.raises(ValueError, match="two"):
        paired_interval([0.1], 0.0)
