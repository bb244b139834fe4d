from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons

from wrssl.data import load_scenario
from wrssl.data.sources.moons import moon_distances


def test_sizes_and_settings():
    scn = load_scenario("moons")
    assert (len(scn.labeled[0]), len(scn.unlabeled), len(scn.validation[0]), len(scn.test[0])) == (20, 1000, 400, 1000)
    assert (scn.noise, scn.vat_epsilon, scn.input_shape, scn.notes) == (0.15, 0.5, (2,), [])
    assert np.bincount(scn.labeled[1]).tolist() == [10, 10]
    assert np.bincount(scn.validation[1]).tolist() == [200, 200]


def test_distances_against_a_fine_sampling_of_the_moons():
    curve, side = make_moons(4_000, shuffle=False)
    points = np.random.default_rng(0).uniform(-2, 3, (200, 2))
    for distance, which in zip(moon_distances(points), (0, 1), strict=True):
        wanted = np.linalg.norm(points[:, None] - curve[side == which][None], axis=2).min(axis=1)
        assert np.allclose(distance, wanted, atol=2e-3)


def test_rows_lie_on_their_moon():
    scn = load_scenario("moons")
    for rows, labels in (scn.labeled, scn.validation, scn.test):
        distance = np.stack(moon_distances(rows.numpy().astype(float)), axis=1)[np.arange(len(rows)), labels]
        assert distance.mean() == pytest.approx(0.08, abs=0.03)  # E|N(0, 0.1)|


def test_boundary_points_are_in_the_gap_and_in_neither_moon():
    scn = load_scenario("moons", "boundary", 0.5)
    upper, lower = moon_distances(scn.unlabeled[scn._is_ood].numpy().astype(float))
    assert np.abs(upper - lower).max() <= 0.1 + 1e-6
    assert np.minimum(upper, lower).min() >= 0.2 - 1e-6


def test_faraway_points_shift_batch_statistics_strongly():
    scn = load_scenario("moons", "faraway", 0.5)
    own, foreign = scn.unlabeled[~scn._is_ood], scn.unlabeled[scn._is_ood]
    assert ((foreign.mean(0) - own.mean(0)) / own.std(0)).min() > 4
    assert (foreign.min(0).values > 3).all()


def test_mixed_is_half_and_half_and_any_number_can_be_made():
    scn = load_scenario("moons", "mixed", 0.5)
    foreign = scn.unlabeled[scn._is_ood]
    assert int((foreign[:, 0] > 3).sum()) == 250
    assert len(load_scenario("moons", "boundary", 0.99, "add").unlabeled) == 25_000
