"""The thinned data order: visits in proportion to the rates, none twice an epoch, a function of the step alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from wrssl.training.order import BLOCK, ThinnedOrder, epoch_shift


def drawn(size, seed):
    """Rates of all sizes, with some 0 and some 1, the first and the last among them."""
    rng = np.random.default_rng(seed)
    rates = rng.random(size).astype(np.float32)
    rates[rng.random(size) < 0.2], rates[rng.random(size) < 0.2] = 0, 1
    rates[[0, -1]] = 0
    return torch.from_numpy(rates)


def epochs_of(order, count):
    """The first epochs, one row each."""
    steps = -(-count * order.size // order.batch)
    return torch.cat([order(step) for step in range(steps)])[: count * order.size].view(count, order.size).numpy()


@pytest.mark.parametrize("size", [3, 10, 257, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_no_member_is_visited_twice_in_an_epoch(size, seed):
    rates = drawn(size, seed)
    if rates.sum() < 1:
        rates[1] = 1
    order = ThinnedOrder(rates, 8, key=seed)
    assert order.size == math.floor(float(rates.double().sum()))
    for epoch in epochs_of(order, 30):
        assert len(np.unique(epoch)) == order.size


def test_an_epoch_takes_its_share_of_every_stretch_of_the_pool():
    """Systematic sampling: members i … j get ⌊L⌋ or ⌈L⌉ visits, L their rates times n/A."""
    rates = drawn(200, 0)
    order = ThinnedOrder(rates, 8, key=1)
    ends = np.r_[0, np.cumsum(rates.numpy().astype(np.float64))] * order.size / float(rates.double().sum())
    for epoch in epochs_of(order, 20):
        so_far = np.r_[0, np.cumsum(np.bincount(epoch, minlength=200))]
        length, visits = ends - ends[:, None], so_far - so_far[:, None]
        assert (np.abs(length - visits) < 1 + 1e-9).all()


def test_visits_are_in_proportion_to_the_rates():
    """Exactly so for shifts that are spread evenly; a member with rate a then has a n/A of E epochs, give or
    take one."""
    size, count = 60, 400
    rates = drawn(size, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wrssl.training.order.epoch_shift", lambda epoch, key: (epoch % count + 0.5) / count)
        order = ThinnedOrder(rates, 8, key=2)
        visits = np.bincount(epochs_of(order, count).ravel(), minlength=size) / count
    expected = rates.double().numpy() * order.size / float(rates.double().sum())
    np.testing.assert_allclose(visits, expected, atol=1 / count + 1e-9)


@pytest.mark.parametrize("key", [0, 7, 2**63 - 1])
def test_visits_are_in_proportion_to_the_rates_with_the_real_shifts(key):
    """Each epoch is a draw of its own: 5 deviations of a binomial share."""
    size, count = 40, 3000
    rates = drawn(size, 2)
    order = ThinnedOrder(rates, 64, key)
    visits = np.bincount(epochs_of(order, count).ravel(), minlength=size) / count
    expected = rates.double().numpy() * order.size / float(rates.double().sum())
    assert (np.abs(visits - expected) <= 5 * np.sqrt(expected * (1 - expected) / count) + 1e-9).all()


def test_a_member_of_rate_one_is_visited_in_nearly_every_epoch():
    rates = drawn(500, 3)
    order = ThinnedOrder(rates, 50, key=0)
    total = float(rates.double().sum())
    visits = np.bincount(epochs_of(order, 400).ravel(), minlength=500)[rates.numpy() == 1] / 400
    assert len(visits) > 50
    assert visits.mean() == pytest.approx(order.size / total, abs=0.002)
    assert visits.min() > 0.97


@pytest.mark.parametrize("seed", range(4))
def test_a_member_of_rate_zero_is_never_visited(seed):
    rates = drawn(50, seed)
    order = ThinnedOrder(rates, 10, key=seed)
    visited = np.unique(epochs_of(order, 300))
    assert set(visited) <= set(np.flatnonzero(rates.numpy() > 0))
    assert set(visited) >= set(np.flatnonzero(rates.numpy() > 0.1)), "and the others at some time"


def test_a_point_between_two_members_belongs_to_the_second(monkeypatch):
    """The shift may be 0: the interval of a member begins where the one before it ends, and 0 has no length."""
    monkeypatch.setattr("wrssl.training.order.epoch_shift", lambda epoch, key: np.zeros(len(epoch)))
    order = ThinnedOrder(torch.tensor([0.0, 1.0, 1.0, 0.0, 0.5, 0.5]), 3, key=0)
    for epoch in epochs_of(order, 5):
        assert sorted(epoch) == [1, 2, 4]


@pytest.mark.parametrize("size", [2, 3, 10, 1000])
@pytest.mark.parametrize("value", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("behind", [0, 2])
def test_the_last_point_stays_on_the_line(size, value, behind, monkeypatch):
    """With the largest shift k + u is rounded up to k + 1: the last point is of the last member that has a rate."""
    monkeypatch.setattr("wrssl.training.order.epoch_shift", lambda epoch, key: np.full(len(epoch), 1 - 2.0**-53))
    rates = torch.cat([torch.full((size,), value), torch.zeros(behind)])
    order = ThinnedOrder(rates, 8, key=0)
    for epoch in epochs_of(order, 3):
        assert epoch.max() == size - 1, "and not one that does not exist"


@pytest.mark.parametrize("size", [2, 7, 64, 1000])
def test_rates_of_one_visit_every_member_once_an_epoch(size):
    order = ThinnedOrder(torch.ones(size), 5, key=3)
    for epoch in epochs_of(order, 10):
        assert sorted(epoch) == list(range(size))


@pytest.mark.parametrize("value", [0.1, 0.7, 1.0])
def test_equal_rates_visit_all_alike(value):
    """In single precision ten times 0.7 is a little less than 7."""
    count = 2000
    order = ThinnedOrder(torch.full((10,), value), 4, key=4)
    visits = np.bincount(epochs_of(order, count).ravel(), minlength=10) / count
    assert visits == pytest.approx([order.size / 10] * 10, abs=0.06)


def test_epochs_and_keys_differ_and_look_random():
    rates = drawn(1000, 5)
    one, other = (epochs_of(ThinnedOrder(rates, 100, key), 2) for key in (1, 2))
    assert (one[0] != one[1]).mean() > 0.9
    assert (one[0] != other[0]).mean() > 0.9
    assert abs(np.corrcoef(np.arange(one.shape[1]), one[0])[0, 1]) < 0.15, "not in the order of the pool"
    assert set(one[0]) != set(one[1]), "a member that is left out now may come later"


def test_any_step_can_be_asked_for_in_any_order():
    rates = drawn(300, 6)
    order = ThinnedOrder(rates, 32, key=9)
    steps = [*range(5), BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7, 10**6]
    forward = {step: order(step).clone() for step in steps}
    for step in (*reversed(steps), 3, 10**6, 3):
        assert torch.equal(order(step), forward[step])
        assert torch.equal(ThinnedOrder(rates.clone(), 32, key=9)(step), forward[step])


def test_batches_follow_one_another_without_a_gap():
    """The same endless sequence, whatever the batch; blocks are seamless."""
    rates = drawn(300, 7)
    small, large = (ThinnedOrder(rates, batch, key=1) for batch in (10, 30))
    sequences = [torch.cat([order(step) for step in range(n)]) for order, n in ((small, 3 * 90), (large, 90))]
    assert BLOCK < 90
    assert torch.equal(*sequences)


def test_a_batch_is_never_larger_than_an_epoch():
    order = ThinnedOrder(torch.full((100,), 0.1), 64, key=0)
    assert order.size == 10
    assert all(len(np.unique(order(step))) == len(order(step)) == 10 for step in range(20))


@pytest.mark.parametrize("rates", [[0.3], [1.0], [0.2, 0.0, 0.3], [0.0, 1e-6, 0.0]])
def test_fewer_than_one_visit_per_epoch_still_fill_two_rows(rates):
    """Batch norm has no statistics of a single row."""
    order = ThinnedOrder(torch.tensor(rates), 64, key=0)
    visited = set()
    for step in range(50):
        rows = order(step)
        assert rows.shape == (2,)
        visited |= set(rows.tolist())
    assert visited == {j for j, a in enumerate(rates) if a > 0}


def test_batches_are_indices():
    rows = ThinnedOrder(drawn(100, 8), 16, key=0)(3)
    assert rows.dtype == torch.int64
    assert rows.shape == (16,)


def test_small_rates_of_a_large_pool_are_not_lost():
    """A running sum in single precision would stop growing at 2²⁴ · 10⁻³ ≈ 16,777."""
    rates = torch.full((3_000_000,), 1e-3)
    rates[:100_000] = 1
    order = ThinnedOrder(rates, 1000, key=0)
    assert order.size == pytest.approx(100_000 + 2900, abs=1)
    rows = torch.cat([order(step) for step in range(103)])
    assert (rows >= 100_000).float().mean() == pytest.approx(2900 / 102_900, rel=0.2)
    assert rows.max() > 2_900_000


@pytest.mark.parametrize("key", [0, 5, 2**63 - 1])
def test_shifts_are_uniform_and_independent(key):
    shift = epoch_shift(np.arange(20_000), key)
    assert shift.dtype == np.float64
    assert shift.min() >= 0
    assert shift.max() < 1
    counts = np.histogram(shift, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 50  # chi-squared, 19 degrees of freedom
    assert abs(np.corrcoef(shift[:-1], shift[1:])[0, 1]) < 0.04


def test_a_shift_is_a_function_of_epoch_and_key():
    epochs = np.array([4, 0, 4, 10**12])
    shift = epoch_shift(epochs, 3)
    assert shift[0] == shift[2] == epoch_shift(np.array([4]), 3)[0]
    assert len(set(shift)) == 3
    assert not np.isin(epoch_shift(epochs, 10**6), shift).any()
