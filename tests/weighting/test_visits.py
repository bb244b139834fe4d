"""Visits: in the long run each member contributes its weight, and every batch as much as a clean one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.api import OptionError
from wrssl.data import Scenario
from wrssl.training import Batches, TrainingData
from wrssl.weighting.visits import FEW, SCARCE, Visits


def drawn(size=60, seed=0):
    """Weights of all sizes, with some 0, some 1 and some below a floor of 0.2."""
    weights = torch.rand(size, generator=torch.Generator().manual_seed(seed))
    weights[::7], weights[1::7], weights[2::7] = 0.0, 1.0, 0.1
    return weights


def following(weights, floor):
    visits = Visits(floor)
    visits.follow(lambda index: weights[index], len(weights))
    return visits


def share_of(weights, floor):
    """s of members that are visited in proportion to max(w, floor)."""
    return (weights / weights.clamp_min(floor)).clamp_max(1)


def in_the_loop(rates, batch):
    """Batches of the pool as the training loop takes them at these rates: from a step to places in the pool."""
    known = torch.zeros(4, 2), torch.arange(4) % 2
    pool = torch.arange(2.0 * len(rates.rate)).view(-1, 2)
    data = TrainingData.of(Scenario(labeled=known, unlabeled=pool), 0, "halves")
    batches = Batches(data, batch, 3, torch.device("cpu"))
    batches.visit(rates)
    return lambda step: batches(step, False).index


@pytest.mark.parametrize("size", [1, 60, 100_000, 100_001, 250_003])
def test_the_rate_is_the_weight_but_not_below_the_floor(size):
    """Large pools are weighed in parts, each member once."""
    weights, asked = drawn(size), []

    def weigh(index):
        asked.append(index)
        return weights[index]

    visits = Visits(0.2)
    visits.follow(weigh, size)
    rate = visits.rates.rate
    assert torch.equal(rate, torch.where(weights > 0.2, weights, torch.tensor(0.2)))
    assert rate.dtype == torch.float32
    assert torch.equal(torch.cat(asked), torch.arange(size))
    assert max(map(len, asked)) <= 100_000


def test_to_follow_leaves_the_weights_alone_and_makes_a_new_version():
    """The loop makes a new order where the version is new, and only there."""
    weights = drawn()
    before, visits = weights.clone(), Visits(0.2)
    found = []
    for _ in range(3):
        visits.follow(lambda index: weights, len(weights))
        found.append(visits.rates)
    assert torch.equal(weights, before)
    assert [rates.version for rates in found] == [0, 1, 2]
    assert all(torch.equal(rates.rate, found[0].rate) for rates in found)
    assert len({rates.rate.data_ptr() for rates in found}) == 3, "rates that were handed out stay as they are"


def test_before_visits_follow_anything_all_members_are_visited_equally_often():
    visits, weights = Visits(0.2), drawn()
    assert visits.rates is None
    now = visits.batch(torch.arange(60), weights)
    assert now.weight is now.factor is weights
    assert torch.equal(now.presence, torch.where(weights < 0.5, 0.0, weights))


def test_factors_and_presence_by_hand():
    """The shares are 0, 1, ½, 1 and their mean ⅝; those below ½ are no part of batch statistics."""
    visits = following(torch.tensor([1.0, 0.5, 0.1, 0.0]), 0.2)
    index = torch.tensor([3, 1, 2, 0])
    now = visits.batch(index, torch.tensor([0.0, 0.5, 0.1, 1.0]))
    assert now.weight.tolist() == pytest.approx([0, 0.5, 0.1, 1.0])
    assert now.factor.tolist() == pytest.approx([0, 1.6, 0.8, 1.6])
    assert now.presence.tolist() == pytest.approx([0, 1, 0, 1])
    # The evidence has moved since: a member below its rate counts less, one above it counts fully; the mean is ⅝ again.
    now = visits.batch(index, torch.tensor([0.1, 0.25, 0.9, 0.5]))
    assert now.factor.tolist() == pytest.approx([0.8, 0.8, 1.6, 0.8])
    assert now.presence.tolist() == pytest.approx([0, 0, 1, 0.5])


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_counts_as_much_as_a_clean_one(seed):
    """Its factors have mean 1, as those of a pool in which every member weighs 1."""
    weights = drawn(seed=seed)
    visits = following(weights, 0.2)
    index = torch.randperm(60, generator=torch.Generator().manual_seed(seed))[:25]
    share = share_of(weights[index], 0.2)
    assert float(share.mean()) > SCARCE
    factor = visits.batch(index, weights[index]).factor
    assert float(factor.mean()) == pytest.approx(1, abs=1e-6)
    torch.testing.assert_close(factor, share / share.mean())


def test_a_batch_with_hardly_any_member_that_belongs_is_not_scaled_up():
    """The mean of the shares is 0.01: scaled up to 1, one member would count like a hundred."""
    weights = torch.zeros(100)
    weights[0] = 1.0
    visits = following(torch.ones(100), 0.05)
    assert visits.batch(torch.arange(100), weights).factor.tolist() == pytest.approx([10.0, *[0.0] * 99])
    assert SCARCE == 0.1
    assert not visits.batch(torch.arange(1, 100), weights[1:]).factor.any(), "no member at all: 0 and not NaN"


@pytest.mark.parametrize(("own", "scale"), [(50, 1.0), (20, 1.0), (18, 0.8), (12, 0.2), (10, 0.0), (3, 0.0), (0, 0.0)])
def test_a_pool_to_which_hardly_any_member_belongs_has_no_influence(own, scale):
    """So many of a thousand count; a batch of them counts less as the pool has fewer, in the statistics all or none."""
    assert FEW == 0.01
    weights = torch.zeros(1000)
    weights[:own] = 1.0
    visits, index = following(weights, 0.05), torch.arange(100)
    now = visits.batch(index, torch.ones(100))  # whatever the evidence has made of them since
    assert visits.scale == pytest.approx(scale, abs=1e-6)
    assert float(now.factor.mean()) == pytest.approx(scale, abs=1e-6)
    assert now.presence.tolist() == [float(scale > 0)] * 100


def test_values_as_if_all_members_were_visited_equally_often():
    """A mean over visits with these values is the mean over the pool."""
    weights = drawn(200)
    visits = following(weights, 0.2)
    order = in_the_loop(visits.rates, 50)
    values, about = 1 + torch.arange(200.0) / 50, weights.sin()
    index = torch.cat([order(step) for step in range(4000)])
    counts = visits.unthinned(index, values[index])
    over_visits = (counts * about[index]).sum() / counts.sum()
    assert float(over_visits) == pytest.approx(float((values * about).sum() / values.sum()), rel=0.01)
    assert Visits(0.2).unthinned(index, values[index]).equal(values[index])


@pytest.mark.parametrize("floor", [0.02, 0.2])
def test_in_the_long_run_each_member_contributes_what_it_weighs(floor):
    """Σ over steps of f_j · 1[j in the batch] against w_j, where visits are exactly in proportion to rates.

    An epoch takes a point of every stretch of length A/n of the line on which member j owns an interval of length a_j,
    in random order, and shifts are spread evenly over the epochs. What is left is that a batch with a member that
    counts fully has a slightly larger mean to be divided by, 1 % for a batch of fifty.
    """
    epochs, batch, weights = 1000, 50, drawn(200)
    visits, rng = following(weights, floor), np.random.default_rng(5)
    ends = np.cumsum(visits.rates.rate.double().numpy())
    number = int(ends[-1])
    points = (np.arange(number) + (np.arange(epochs)[:, None] + 0.5) / epochs) * ends[-1] / number
    members = rng.permuted(np.searchsorted(ends, points, side="right"), axis=1)
    steps = epochs * number // batch
    contributed = torch.zeros(200, dtype=torch.float64)
    for index in torch.from_numpy(members).flatten()[: steps * batch].view(steps, batch):
        contributed.index_add_(0, index, visits.batch(index, weights[index]).factor.double())
    assert float(contributed.sum()) == pytest.approx(batch * steps, rel=1e-5), "as much as with equal visits"
    expected = batch * steps * weights.double() / float(weights.double().sum())
    torch.testing.assert_close(contributed, expected, rtol=0.03, atol=3)  # members below the floor too
    assert (expected > 100).sum() > 100, "in numbers beside which 3 is little"
    assert contributed[weights == 0].sum() == 0


@pytest.mark.parametrize("floor", [0.02, 0.2])
def test_the_batches_of_the_loop_contribute_what_members_weigh(floor):
    """As above, by the order that the loop takes: with random shifts, so for groups of forty members of like weight."""
    batch, weights = 50, drawn(200)
    visits = following(weights, floor)
    order, contributed = in_the_loop(visits.rates, batch), torch.zeros(200, dtype=torch.float64)
    for step in range(3000):
        index = order(step)
        contributed.index_add_(0, index, visits.batch(index, weights[index]).factor.double())
    expected = 3000 * batch * weights.double() / float(weights.double().sum())
    groups = [torch.argsort(weights)[start : start + 40] for start in range(0, 200, 40)]
    found, wanted = (torch.stack([values[group].sum() for group in groups]) for values in (contributed, expected))
    torch.testing.assert_close(found, wanted, rtol=0.03, atol=60)  # the lightest group hangs on few visits
    assert wanted.max() > 50_000
    assert contributed[weights == 0].sum() == 0


def test_a_member_that_weighs_nothing_is_still_visited():
    weights = torch.zeros(100)
    weights[:50] = 1.0
    order = in_the_loop(following(weights, 0.05).rates, 20)
    visited = torch.bincount(torch.cat([order(step) for step in range(500)]), minlength=100).double()
    assert visited[50:].min() > 0
    assert float(visited[50:].mean() / visited[:50].mean()) == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("floor", [0.0, -0.1, 1.5, float("nan")])
def test_a_floor_that_is_no_share_is_a_sentence(floor):
    with pytest.raises(OptionError, match=r"^floor must be above 0 and at most 1, but it is"):
        Visits(floor)
