"""L2RW against its own algorithm: differentiate through a virtual step, rectify, normalize."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.registry import WEIGHTINGS

ALL = torch.arange(30)
INDEX = torch.tensor([7, 2, 19, 4])


def started(make_pool):
    weighting = WEIGHTINGS.create("l2rw")
    weighting.setup(make_pool())
    return weighting


def by_the_paper(lab, theta, number):
    """u, differentiated at ε = 0 through θ(ε) = θ − ∇ Σ_j ε_j r_j."""
    epsilon = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    ahead = lab.ahead(theta, (epsilon * lab.losses(theta, number)).sum(), rate=1.0)
    (slope,) = torch.autograd.grad(lab.validation(ahead, number), epsilon)
    return (-slope).clamp_min(0)


@pytest.mark.parametrize("scope", ["network", "head"])
@pytest.mark.parametrize("method", ["entmin", "pl"])
def test_a_training_step_is_that_of_the_paper(one_step, method, scope):
    """θ ← θ − lr ∇[CE + λ Σ_j w_j r_j] with w = u / Σ u; for the head, only the last layer moves virtually."""
    lab, counts = one_step("l2rw", method, scope=scope), []
    for number in range(4):
        theta, index = lab.theta(), lab.batch(number).index
        u = by_the_paper(lab, theta, number)
        w = u / (u.sum() + (u.sum() == 0))
        expected = lab.trained(theta, number, 8 * w)  # mean(8 w r) = Σ w r
        lab.take(number)
        for p, q in zip(lab.net.module.parameters(), expected, strict=True):
            torch.testing.assert_close(p.detach(), q, rtol=0, atol=1e-9)
        torch.testing.assert_close(lab.weighting.batch(index).factor, 8 * w, rtol=1e-9, atol=1e-9)
        reported = torch.zeros(8, dtype=torch.float64) if u.max() == 0 else u / u.max()
        torch.testing.assert_close(lab.weighting.batch(index).weight, reported, rtol=1e-9, atol=1e-9)
        counts.append(int((u > 0).sum()))
    assert 1 < max(counts) < 8  # some helped, some did not


def test_the_two_scopes_are_two_different_weights(one_step):
    labs = [one_step("l2rw", scope=scope) for scope in ("network", "head")]
    for lab in labs:
        lab.take(0)
    assert not torch.allclose(*(lab.weighting.batch(torch.arange(8)).weight for lab in labs), atol=0.01)


def test_where_no_member_helps_the_step_is_the_labeled_one(one_step):
    """A threshold that no member passes: every gradient is 0."""
    lab = one_step("l2rw", "pl", threshold=2.0)
    theta = lab.theta()
    gradients = torch.autograd.grad(lab.labeled(theta, 0), theta)
    outcome = lab.take(0)
    assert float(outcome.unlabeled) == 0
    for p, q, g in zip(lab.net.module.parameters(), theta, gradients, strict=True):
        torch.testing.assert_close(p.detach(), (q - 0.1 * g).detach(), rtol=0, atol=1e-12)
    assert lab.weighting.batch(torch.arange(8)).factor.tolist() == [0.0] * 8
    assert lab.weighting.batch(ALL).weight.tolist() == [0.0] * 8 + [1.0] * 22


@pytest.mark.parametrize("gradient", [[1.0, 2.0, 0.5, 3.0], [0.0, 0.0, 0.0, 0.0], [float("nan")] * 4])
def test_harm_no_effect_and_a_broken_estimate_all_weigh_zero(gradient, make_pool, make_signal):
    weighting = started(make_pool)
    weighting.begin(0)
    weighting.update(INDEX, make_signal(gradient))
    assert weighting.batch(INDEX).factor.tolist() == [0.0] * 4
    assert weighting.batch(INDEX).weight.tolist() == [0.0] * 4


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-30, 1.0, 1e30, 1e37])
def test_the_size_of_the_gradients_does_not_matter(scale, make_pool, make_signal):
    """Neither 0/0 where they are tiny nor ∞/∞ where they are huge."""
    weighting = started(make_pool)
    weighting.update(INDEX, make_signal(np.array([-3.0, 1.0, -1.0, -2.0]) * scale))
    rounding = 0.1 if scale < 1e-40 else 1e-6  # numbers below 1e-38 have few digits
    want = torch.tensor([3.0, 0.0, 1.0, 2.0])
    torch.testing.assert_close(weighting.batch(INDEX).factor, 4 * want / 6, rtol=0, atol=rounding)
    torch.testing.assert_close(weighting.batch(INDEX).weight, want / 3, rtol=0, atol=rounding)
    assert weighting.batch(INDEX).factor.sum().item() == pytest.approx(4, abs=1e-5)


def test_broken_entries_weigh_nothing_and_the_others_share(make_pool, make_signal):
    weighting = started(make_pool)
    weighting.update(INDEX, make_signal([float("nan"), -1.0, float("-inf"), -3.0]))
    assert weighting.batch(INDEX).factor.tolist() == [0.0, 1.0, 0.0, 3.0]


def test_one_helper_gets_all_of_it(make_pool, make_signal):
    weighting = started(make_pool)
    weighting.update(INDEX, make_signal([1.0, 1.0, -1e-9, 1.0]))
    assert weighting.batch(INDEX).factor.tolist() == [0.0, 0.0, 4.0, 0.0]
    assert weighting.batch(INDEX).weight.tolist() == [0.0, 0.0, 1.0, 0.0]


def test_nothing_is_left_of_a_batch_but_the_reported_weights(make_pool, make_signal):
    """The next batch is just as long; its factors must not be those of the last one."""
    weighting, other = started(make_pool), torch.tensor([8, 2, 9, 10])
    weighting.update(INDEX, make_signal([-4.0, -1.0, 1.0, -2.0]))
    assert weighting.batch(other).factor.tolist() == [1.0, 0.25, 1.0, 1.0], "it is another batch"
    weighting.begin(1)
    for index in (other, INDEX):
        assert torch.equal(weighting.batch(index).factor, weighting.batch(index).weight), "factors belong to one step"
    assert weighting.batch(other).factor.tolist() == [1.0, 0.25, 1.0, 1.0]
    weighting.update(other, make_signal([-1.0, 1.0, -1.0, 1.0]))
    assert weighting.batch(other).factor.tolist() == [2.0, 0.0, 2.0, 0.0]
    assert weighting.batch(torch.tensor([7, 2, 19, 4, 0])).weight.tolist() == [1.0, 0.0, 0.0, 0.5, 1.0]


def test_it_asks_for_the_validation_set_in_every_step():
    weighting = WEIGHTINGS.create("l2rw")
    assert all(weighting.request(step).outer == "validation" for step in (0, 1, 17))


def test_the_state_goes_into_a_new_object_and_on_from_there(make_pool, make_signal):
    one, other = started(make_pool), started(make_pool)
    one.update(INDEX, make_signal([-4.0, -1.0, 1.0, -2.0]))
    state = {name: value.clone() for name, value in one.state_dict().items()}
    other.load_state_dict(state)
    assert torch.equal(one.batch(ALL).weight, other.batch(ALL).weight)
    for weighting in (one, other):
        weighting.update(INDEX, make_signal([1.0, -1.0, 1.0, -2.0]))
    assert torch.equal(one.batch(ALL).weight, other.batch(ALL).weight)
    assert not torch.equal(one.batch(ALL).weight, state["table"])
