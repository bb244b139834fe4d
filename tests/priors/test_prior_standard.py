"""The units in which pool and reference are compared."""

import numpy as np
import pytest

from wrssl.priors.standard import DOUBT, Standard


def test_alike_samples_have_mean_0_and_variance_1(normal):
    rows = normal(500, 4, 0) * np.float32([1, 50, 0.01, 3]) + np.float32([0, 1000, 5, -7])
    scaled = Standard.of(rows, rows)(rows)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled.mean(0, dtype=np.float64), 0, atol=1e-3)
    np.testing.assert_allclose(scaled.std(0, dtype=np.float64), 1, atol=1e-3)


def test_the_narrower_sample_sets_the_unit_and_few_references_are_doubted(normal):
    known, pool = normal(30, 2, 0) * np.float32([1, 9]), normal(400, 2, 1) * np.float32([5, 2])
    mixed = np.sqrt((30 * known[:, 0].astype(float).var() + DOUBT * pool[:, 0].astype(float).var()) / (30 + DOUBT))
    standard = Standard.of(known, pool)
    np.testing.assert_allclose(standard.deviation, [mixed, pool[:, 1].std()], rtol=1e-5)
    np.testing.assert_allclose(standard.mean, pool.mean(0), rtol=1e-4)


def test_members_far_away_stay_far_away(normal):
    """In units of the pool its two halves would be two deviations apart, however far they are."""
    known, own = normal(100, 3, 0), normal(300, 3, 1)
    far = normal(300, 3, 2) + np.float32([30, 0, 0])
    standard = Standard.of(known, np.concatenate([own, far]))
    apart = standard(far)[:, 0].mean() - standard(own)[:, 0].mean()
    assert apart > 5


def test_a_column_with_one_value_keeps_its_unit():
    rows = np.c_[np.full(300, 0.1), np.arange(300)].astype(np.float32)
    standard = Standard.of(rows[:50], rows)
    assert (standard(rows)[:, 0] == 0).all()
    assert standard(np.array([[3.1, 0.0]], dtype=np.float32))[0, 0] == pytest.approx(3, rel=1e-6)


def test_a_column_that_only_the_pool_moves_is_seen(normal):
    pool = normal(200, 1, 0)
    standard = Standard.of(np.zeros((40, 1), np.float32), pool)
    assert standard.deviation[0] == pytest.approx(pool.std() * np.sqrt(DOUBT / (40 + DOUBT)), rel=1e-4)


def test_absurd_values_are_cut_at_20_deviations(normal):
    standard = Standard.of(normal(200, 2, 1), normal(200, 2, 0))
    got = standard(np.array([[1e6, -1e30], [15.0, -15.0]], dtype=np.float32))
    assert got[0].tolist() == [20, -20]
    assert (np.abs(got[1]) > 10).all()
    assert (np.abs(got[1]) < 20).all()
