"""The computed data order: a permutation per epoch, a function of the step alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.training.order import BLOCK, Order, permute


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100, 1000, 4097])
def test_every_epoch_visits_every_member_once(size):
    positions = np.arange(size)
    for epoch in (0, 1, 5):
        got = permute(positions, np.full(size, epoch), size, key=12345)
        assert sorted(got) == list(range(size))


def test_epochs_and_keys_differ_and_look_random():
    size = 1000
    positions = np.arange(size)
    first = permute(positions, np.zeros(size), size, 1)
    assert (first != permute(positions, np.ones(size), size, 1)).mean() > 0.9
    assert (first != permute(positions, np.zeros(size), size, 2)).mean() > 0.9
    # Rank correlation with the position, and between neighbours: about 0 ± 1/√1000 for a random order.
    assert abs(np.corrcoef(positions, first)[0, 1]) < 0.12
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.12


def test_position_and_member_are_independent_over_many_keys():
    """Chi-squared over a 5 × 5 table of 4,000 keys: 20 would be uniform noise, 60 a broken hash."""
    counts = np.zeros((5, 5))
    for key in range(4000):
        got = permute(np.arange(5), np.zeros(5), 5, key)
        counts[np.arange(5), got] += 1
    assert ((counts - 800) ** 2 / 800).sum() < 60


def test_batches_cover_the_epoch_and_can_be_asked_in_any_order():
    order = Order(1000, 100, key=7)
    epoch = torch.cat([order(step) for step in range(10)])
    assert sorted(epoch.tolist()) == list(range(1000))
    later = order(BLOCK + 3)
    again = Order(1000, 100, key=7)
    assert torch.equal(again(BLOCK + 3), later)
    assert torch.equal(again(4), epoch[400:500])


def test_a_batch_is_never_larger_than_the_data():
    assert len(Order(30, 100, key=0)(5)) == 30


def test_a_single_member_is_seen_twice_since_batch_norm_needs_two_rows():
    assert Order(1, 100, key=0)(3).tolist() == [0, 0]


def test_huge_pools_cost_nothing():
    index = Order(10**9, 100, key=3)(10**6)
    assert index.shape == (100,)
    assert 0 <= int(index.min()) <= int(index.max()) < 10**9
