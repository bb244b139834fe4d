"""What a prior is fitted to: rows, all that is drawn at random, and the units of rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.priors.samples import DOUBT, FOLDS, Units, draw_folds, draw_samples, shuffled


def test_alike_samples_have_mean_0_and_variance_1(normal):
    rows = normal(500, 4, 0) * np.float32([1, 50, 0.01, 3]) + np.float32([0, 1000, 5, -7])
    scaled = Units.of(rows, rows)(rows)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled.mean(0, dtype=np.float64), 0, atol=1e-3)
    np.testing.assert_allclose(scaled.std(0, dtype=np.float64), 1, atol=1e-3)


def test_the_narrower_sample_sets_the_unit_and_few_references_are_doubted(normal):
    known, pool = normal(30, 2, 0) * np.float32([1, 9]), normal(400, 2, 1) * np.float32([5, 2])
    mixed = np.sqrt((30 * known[:, 0].astype(float).var() + DOUBT * pool[:, 0].astype(float).var()) / (30 + DOUBT))
    units = Units.of(known, pool)
    np.testing.assert_allclose(units.deviation, [mixed, pool[:, 1].std()], rtol=1e-5)
    np.testing.assert_allclose(units.mean, pool.mean(0), rtol=1e-4)


def test_members_far_away_stay_far_away(normal):
    """In units of the pool its two halves would be two deviations apart, however far they are."""
    known, own = normal(100, 3, 0), normal(300, 3, 1)
    far = normal(300, 3, 2) + np.float32([30, 0, 0])
    units = Units.of(known, np.concatenate([own, far]))
    apart = units(far)[:, 0].mean() - units(own)[:, 0].mean()
    assert apart > 5


def test_a_column_with_one_value_keeps_its_unit():
    rows = np.c_[np.full(300, 0.1), np.arange(300)].astype(np.float32)
    units = Units.of(rows[:50], rows)
    assert (units(rows)[:, 0] == 0).all()
    assert units(np.array([[3.1, 0.0]], dtype=np.float32))[0, 0] == pytest.approx(3, rel=1e-6)


def test_a_column_that_only_the_pool_moves_is_seen(normal):
    pool = normal(200, 1, 0)
    units = Units.of(np.zeros((40, 1), np.float32), pool)
    assert units.deviation[0] == pytest.approx(pool.std() * np.sqrt(DOUBT / (40 + DOUBT)), rel=1e-4)


def test_absurd_values_are_clipped_at_20_deviations(normal):
    units = Units.of(normal(200, 2, 1), normal(200, 2, 0))
    got = units(np.array([[1e6, -1e30], [15.0, -15.0]], dtype=np.float32))
    assert got[0].tolist() == [20, -20]
    assert (np.abs(got[1]) > 10).all()
    assert (np.abs(got[1]) < 20).all()


@pytest.mark.parametrize("size", [1, 2, 25, 4_321])
def test_the_small_shuffle_is_the_permutation_of_the_generator(size):
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    found = shuffled(size, one)
    assert found.dtype == np.int32
    assert found.tolist() == other.permutation(size).tolist()
    assert one.integers(2**31) == other.integers(2**31), "and the stream goes on as it would"


@pytest.mark.parametrize("sizes", [(5, 5, 5), (7, 23, 1), (50,), (1, 1, 1, 1, 6)])
def test_every_class_is_spread_over_the_folds(sizes):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    _, folds, _ = draw_folds(labels, 30, np.random.default_rng(3))
    for wanted in (labels >= 0, *(labels == c for c in range(len(sizes)))):  # all together, and each class
        counts = np.bincount(folds[wanted], minlength=FOLDS)
        assert len(counts) == FOLDS
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("members", [5, 21, 104])
def test_the_folds_of_the_pool_are_of_equal_size(members):
    _, _, folds = draw_folds(np.arange(20) % 2, members, np.random.default_rng(3))
    counts = np.bincount(folds, minlength=FOLDS)
    assert counts.sum() == members
    assert counts.max() - counts.min() <= 1


def test_folds_and_seed_are_drawn():
    labels = np.repeat([0, 1], 20)
    one, same, other = (draw_folds(labels, 40, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert one[0] == same[0] != other[0]
    for number in (1, 2):
        assert one[number].dtype == np.uint8, "they are stored"
        assert np.array_equal(one[number], same[number])
        assert not np.array_equal(one[number], other[number])
        assert not np.array_equal(one[number], np.arange(40) % FOLDS), "not the order of rows, which may mean something"


def test_everything_is_drawn_from_one_generator_in_this_order(normal, monkeypatch):
    """The order decides the numbers: another one would give another prior."""
    monkeypatch.setattr("wrssl.priors.samples.KNOWN_ROWS", 30)
    monkeypatch.setattr("wrssl.priors.samples.POOL_ROWS", 50)
    known, labels, pool = torch.from_numpy(normal(40, 2, 1)), np.arange(40) % 3, torch.from_numpy(normal(90, 2, 2))
    samples, part = draw_samples(known, labels, pool, 8)
    random = np.random.default_rng(8)
    chosen, expected = np.sort(random.permutation(40)[:30]), np.sort(random.permutation(90)[:50])
    assert part.tolist() == expected.tolist()
    np.testing.assert_array_equal(samples.known, known.numpy()[chosen])
    np.testing.assert_array_equal(samples.labels, labels[chosen])
    np.testing.assert_array_equal(samples.pool, pool.numpy()[part])
    seed, known_folds, pool_folds = draw_folds(labels[chosen], 50, random)
    assert samples.seed == seed
    assert samples.known_folds.tolist() == known_folds.tolist()
    assert samples.pool_folds.tolist() == pool_folds.tolist()
