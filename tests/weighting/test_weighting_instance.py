"""wr-instance: one weight per member, and only those that were visited move."""

from __future__ import annotations

import numpy as np
import torch

from wrssl.judging import PoolJudge
from wrssl.registry import WEIGHTINGS

ALL = torch.arange(30)


def started(make_pool, **options):
    weighting = WEIGHTINGS.create("wr-instance", options)
    weighting.setup(make_pool())
    return weighting


def test_every_weight_starts_at_one(make_pool):
    weighting = started(make_pool)
    assert weighting.batch(ALL).weight.tolist() == [1.0] * 30
    assert not isinstance(weighting, PoolJudge), "the network judges the pool"
    assert weighting.visits is None


def test_only_visited_members_move_each_by_its_own_gradient(make_pool, make_signal):
    weighting = started(make_pool, l1=0.0)
    index, g = torch.tensor([7, 2, 19, 4]), np.array([1.0, 3.0, -2.0, 0.5])
    weighting.update(index, make_signal(g))
    want = np.ones(30)
    want[index.numpy()] = np.clip(1 - 0.1 * g / np.sqrt(np.mean(g**2)), 0, 1)
    np.testing.assert_allclose(weighting.batch(ALL).weight.numpy(), want, rtol=0, atol=1e-6)
    np.testing.assert_allclose(weighting.batch(index).weight.numpy(), want[index.numpy()], rtol=0, atol=1e-6)
    untouched = weighting.batch(ALL).weight
    untouched[index] = 1.0
    assert untouched.tolist() == [1.0] * 30


def test_steps_without_an_estimate_change_nothing(make_pool, make_signal):
    weighting = started(make_pool, l1=0.5)
    weighting.update(torch.tensor([3]), make_signal(None))
    assert weighting.batch(ALL).weight.tolist() == [1.0] * 30
    assert weighting.descent.updates.item() == 0


def test_l1_reaches_visited_members_only(make_pool, make_signal):
    weighting = started(make_pool, l1=0.5)
    weighting.update(torch.tensor([3, 5]), make_signal([0.0, 0.0]))
    want = torch.ones(30)
    want[[3, 5]] = 0.95
    torch.testing.assert_close(weighting.batch(ALL).weight, want)


def test_plain_steps(make_pool, make_signal):
    weighting = started(make_pool, compat="paper", alpha=0.01, beta=2.0, l1=0.0)
    weighting.update(torch.tensor([3, 5]), make_signal([0.1, 0.4]))
    torch.testing.assert_close(weighting.batch(torch.tensor([3, 5, 6])).weight, torch.tensor([0.8, 0.2, 1.0]))


def test_a_harmful_member_reaches_zero_and_a_useful_one_returns(make_pool, make_signal):
    """Some visits suffice, as the normalized step promises."""
    weighting = started(make_pool)
    index = torch.tensor([1, 2])
    for _ in range(12):
        weighting.update(index, make_signal([1e-6, -1e-6]))
    assert weighting.batch(index).weight.tolist() == [0.0, 1.0]
    for _ in range(12):
        weighting.update(index, make_signal([-1e-6, 1e-6]))
    assert weighting.batch(index).weight.tolist() == [1.0, 0.0]


def test_the_weights_handed_out_are_copies(make_pool):
    weighting = started(make_pool)
    weighting.batch(torch.tensor([3, 5])).weight.zero_()
    assert weighting.batch(ALL).weight.tolist() == [1.0] * 30
    assert not weighting.batch(ALL).weight.requires_grad


def test_a_gradient_of_another_type_is_taken(make_pool, make_signal):
    weighting = started(make_pool, l1=0.0)
    signal = make_signal([1.0, 1.0])
    object.__setattr__(signal, "hypergradient", signal.hypergradient.double())
    weighting.update(torch.tensor([0, 1]), signal)
    torch.testing.assert_close(weighting.batch(torch.tensor([0, 1])).weight, torch.tensor([0.9, 0.9]))


def test_the_state_goes_into_a_new_object_and_on_from_there(make_pool, make_signal):
    one, other = started(make_pool), started(make_pool)
    one.update(torch.tensor([1, 2, 3]), make_signal([1.0, -2.0, 3.0]))
    one.update(torch.tensor([3, 4, 5]), make_signal([0.1, 0.2, 0.1]))
    state = {name: value.clone() for name, value in one.state_dict().items()}
    other.load_state_dict(state)
    assert torch.equal(one.batch(ALL).weight, other.batch(ALL).weight)
    for weighting in (one, other):
        weighting.update(torch.tensor([2, 4, 9]), make_signal([5.0, 1.0, 0.3]))
    assert torch.equal(one.batch(ALL).weight, other.batch(ALL).weight)
    assert not torch.equal(one.batch(ALL).weight, state["table"])
