"""Visits: in the long run each member contributes what its weight says, and every batch as much as a clean one."""

from __future__ import annotations

import pytest
import torch
from wrssl.training.thinned import ThinnedOrder

from wrssl.weighting.visits import FEW, SCARCE, Visits


def drawn(size=60, seed=0):
    """Weights of all sizes, with some 0, some 1 and some below a floor of 0.2."""
    weights = torch.rand(size, generator=torch.Generator().manual_seed(seed))
    weights[::7], weights[1::7], weights[2::7] = 0.0, 1.0, 0.1
    return weights


def dealt(weights, floor):
    visits = Visits(floor)
    visits.deal(lambda index: weights[index], len(weights))
    return visits


@pytest.mark.parametrize("chunk", [1, 7, 60, 1000])
def test_admission_is_the_weight_but_not_below_the_floor(chunk, monkeypatch):
    monkeypatch.setattr("wrssl.weighting.visits.CHUNK", chunk)
    weights = drawn()
    admission = dealt(weights, 0.2).admission
    assert admission.tolist() == [max(w, torch.tensor(0.2).item()) for w in weights.tolist()]
    assert admission.dtype == torch.float32


def test_dealing_leaves_the_weights_alone_and_makes_a_new_tensor():
    """The loop takes a new tensor, and only that, as news."""
    weights = drawn()
    before, visits = weights.clone(), Visits(0.2)
    tensors = []
    for _ in range(2):
        visits.deal(lambda index: weights, len(weights))
        tensors.append(visits.admission)
    assert torch.equal(weights, before)
    assert tensors[0] is not tensors[1]
    assert torch.equal(*tensors)


def test_before_they_are_dealt_everybody_is_visited_alike():
    visits, weights = Visits(0.2), drawn()
    assert visits.admission is None
    assert visits.factors(torch.arange(60), weights) is weights
    assert visits.share(torch.arange(60), weights) is weights


def test_shares_and_factors_by_hand():
    visits = dealt(torch.tensor([1.0, 0.5, 0.1, 0.0]), 0.2)
    index = torch.tensor([3, 1, 2, 0])
    w = torch.tensor([0.0, 0.5, 0.1, 1.0])
    assert visits.share(index, w).tolist() == pytest.approx([0, 1, 0.5, 1])
    assert visits.factors(index, w).tolist() == pytest.approx([0, 1.6, 0.8, 1.6])
    # The evidence has moved since: who weighs less than its visits counts less, who weighs more counts fully.
    moved = torch.tensor([0.1, 0.25, 0.9, 0.5])
    assert visits.share(index, moved).tolist() == pytest.approx([0.5, 0.5, 1, 0.5])
    assert visits.factors(index, moved).tolist() == pytest.approx([0.8, 0.8, 1.6, 0.8])


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_counts_as_much_as_a_clean_one(seed):
    """Its factors have mean 1, as those of a pool in which everybody weighs 1."""
    weights = drawn(seed=seed)
    visits = dealt(weights, 0.2)
    index = torch.randperm(60, generator=torch.Generator().manual_seed(seed))[:25]
    assert float(visits.share(index, weights[index]).mean()) > SCARCE
    assert float(visits.factors(index, weights[index]).mean()) == pytest.approx(1, abs=1e-6)
    assert float(visits.factors(index, weights[index]).min()) >= 0


def test_a_batch_of_strangers_is_not_blown_up():
    """The mean of the shares is 0.01: blown up to 1, noise of a hundred members would count like a full batch."""
    weights = torch.zeros(100)
    weights[0] = 1.0
    visits = dealt(torch.ones(100), 0.05)
    factors = visits.factors(torch.arange(100), weights)
    assert factors.tolist() == pytest.approx([10.0, *[0.0] * 99])
    assert SCARCE == 0.1
    assert not visits.factors(torch.arange(1, 100), weights[1:]).any(), "nobody at all: 0 and not NaN"


@pytest.mark.parametrize(("own", "say"), [(50, 1.0), (20, 1.0), (18, 0.8), (12, 0.2), (10, 0.0), (3, 0.0), (0, 0.0)])
def test_a_pool_to_which_nearly_nobody_belongs_has_no_say(own, say):
    """So many of a thousand count; a batch of them counts less as the pool has fewer, in the statistics all or none."""
    assert FEW == 0.01
    weights = torch.zeros(1000)
    weights[:own] = 1.0
    visits, index = dealt(weights, 0.05), torch.arange(100)
    w = torch.ones(100)  # whatever the evidence has made of them since
    assert visits.say == pytest.approx(say, abs=1e-6)
    assert float(visits.factors(index, w).mean()) == pytest.approx(say, abs=1e-6)
    assert visits.presence(index, w).tolist() == [float(say > 0)] * 100


def test_values_as_if_everybody_were_visited_alike():
    """A mean over visits with these values is the mean over the pool."""
    weights = drawn(200)
    visits = dealt(weights, 0.2)
    order = ThinnedOrder(visits.admission, 50, key=3)
    values, about = 1 + torch.arange(200.0) / 50, weights.sin()
    index = torch.cat([order(step) for step in range(4000)])
    counts = visits.unthinned(index, values[index])
    over_visits = (counts * about[index]).sum() / counts.sum()
    assert float(over_visits) == pytest.approx(float((values * about).sum() / values.sum()), rel=0.01)
    assert Visits(0.2).unthinned(index, values[index]).equal(values[index])


@pytest.mark.parametrize("floor", [0.02, 0.2])
def test_in_the_long_run_each_member_contributes_what_it_weighs(floor, monkeypatch):
    """Σ over steps of f_j · 1[j in the batch] against w_j, over the batches that the loop would make of the admission.

    Shifts are spread evenly over the epochs, so that visits are exact; what is left is that a batch with a member who
    counts fully has a slightly larger mean to be divided by, 1 % for a batch of fifty.
    """
    epochs, batch, weights = 1000, 50, drawn(200)
    monkeypatch.setattr("wrssl.training.thinned.epoch_shift", lambda epoch, key: (epoch % epochs + 0.5) / epochs)
    visits = dealt(weights, floor)
    order = ThinnedOrder(visits.admission, batch, key=5)
    steps = epochs * order.size // batch
    contributed = torch.zeros(200, dtype=torch.float64)
    for step in range(steps):
        index = order(step)
        contributed.index_add_(0, index, visits.factors(index, weights[index]).double())
    assert float(contributed.sum()) == pytest.approx(batch * steps, rel=1e-5), "as much as without any thinning"
    expected = batch * steps * weights.double() / float(weights.double().sum())
    torch.testing.assert_close(contributed, expected, rtol=0.03, atol=3)  # members below the floor too
    assert (expected > 100).sum() > 100, "in numbers beside which 3 is little"
    assert contributed[weights == 0].sum() == 0


def test_who_weighs_nothing_is_still_looked_at():
    weights = torch.zeros(100)
    weights[:50] = 1.0
    order = ThinnedOrder(dealt(weights, 0.05).admission, 20, key=1)
    visited = torch.bincount(torch.cat([order(step) for step in range(500)]), minlength=100).double()
    assert visited[50:].min() > 0
    assert float(visited[50:].mean() / visited[:50].mean()) == pytest.approx(0.05, rel=0.1)
