"""Meta-Weight-Net against its own algorithm: Φ receives the gradient through a virtual step of SGD."""

from __future__ import annotations

import pytest
import torch

from wrssl.api import PredictionWeighting
from wrssl.registry import WEIGHTINGS


def started(make_pool, **options):
    weighting = WEIGHTINGS.create("mwn", options)
    weighting.setup(make_pool())
    return weighting


def close(ours, theirs):
    """Equal up to 10⁻⁹ of the largest entry."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9 * float(theirs.abs().max()))


@pytest.mark.parametrize("scope", ["network", "head"])
@pytest.mark.parametrize("method", ["entmin", "pl"])
def test_training_steps_are_those_of_the_paper(one_step, method, scope):
    """θ̂ = θ − η ∇[CE + λ mean(V(r) r)], Φ ← Adam(∇_Φ L_V(θ̂)), and the real step uses the new Φ."""
    lab = one_step("mwn", method, scope=scope, meta_lr=0.02, decay=0.03)
    phi = lab.weigh_in_double()
    adam = torch.optim.Adam(phi, lr=0.02, weight_decay=0.03)
    for number in range(3):
        lab.rate = 0.3 / (number + 1)  # η is the current learning rate
        theta, index = lab.theta(), lab.batch(number).index
        r = lab.losses(theta, number)
        a = r.detach().unsqueeze(1)
        before = lab.weigh(phi, a)
        ahead = lab.ahead(theta, lab.labeled(theta, number) + lab.coef * (before * r).mean(), lab.rate)
        gradients = torch.autograd.grad(lab.validation(ahead, number), phi)
        for p, g in zip(phi, gradients, strict=True):
            p.grad = g
        adam.step()
        after = lab.weigh(phi, a).detach()
        expected = lab.trained(theta, number, after)

        lab.take(number)
        for p, q, g in zip(lab.weighting.net.parameters, phi, gradients, strict=True):
            assert g.abs().max() > 1e-6
            close(p.grad, g)
            torch.testing.assert_close(p.detach(), q.detach(), rtol=0, atol=1e-9)
        for p, q in zip(lab.net.module.parameters(), expected, strict=True):
            torch.testing.assert_close(p.detach(), q, rtol=0, atol=1e-9)
        torch.testing.assert_close(lab.weighting.batch(index).weight, after, rtol=0, atol=1e-9)
        assert (after - before).abs().min() > 1e-5  # the old weights would have been noticed


def test_the_two_scopes_are_two_different_gradients(one_step):
    labs = [one_step("mwn", scope=scope) for scope in ("network", "head")]
    for lab in labs:
        lab.take(0)
    one, other = (lab.weighting.net.parameters[0].grad for lab in labs)
    assert not torch.allclose(one, other, rtol=0.01, atol=0)


def test_one_step_of_adam_by_hand(make_pool, make_signal):
    """The first step is lr · g/(|g| + 10⁻⁸), with the decay in g: without it, each entry moves by the rate."""
    weighting = started(make_pool, meta_lr=0.01, decay=0.5)
    index, losses = torch.arange(4), torch.tensor([0.2, 0.9, 1.5, 3.0])
    weighting.observe(index, losses, torch.full((4, 10), 0.1))
    before = [p.detach().clone() for p in weighting.net.parameters]
    weighting.update(index, make_signal([1.0, -1.0, 2.0, 0.5], losses=losses))
    for old, new in zip(before, weighting.net.parameters, strict=True):
        g = new.grad + 0.5 * old
        torch.testing.assert_close(new.detach(), old - 0.01 * g / (g.abs() + 1e-8), rtol=0, atol=1e-6)
    assert torch.equal(weighting.batch(index).weight, weighting.weigh(losses, torch.zeros(4, 10)))


def test_a_helpful_loss_gains_weight_and_a_harmful_one_loses_it(make_pool, make_signal):
    weighting, index = started(make_pool, meta_lr=0.05), torch.arange(4)
    losses = torch.tensor([0.1, 0.2, 2.0, 2.5])
    for _ in range(60):
        weighting.observe(index, losses, torch.full((4, 10), 0.1))
        weighting.update(index, make_signal([-1.0, -1.0, 1.0, 1.0], losses=losses))
    w = weighting.batch(index).weight
    assert w[:2].min() > 0.7
    assert w[2:].max() < 0.3


def test_every_weight_is_one_until_the_first_visit(make_pool):
    weighting = started(make_pool)
    assert weighting.batch(torch.arange(30)).weight.tolist() == [1.0] * 30
    weighting.observe(torch.tensor([3, 5]), torch.tensor([0.5, 1.5]), torch.full((2, 10), 0.1))
    seen = weighting.batch(torch.tensor([3, 5])).weight
    assert ((seen > 0) & (seen < 1)).all()
    assert seen[0] != seen[1]
    assert weighting.batch(torch.tensor([0, 4, 29])).weight.tolist() == [1.0] * 3


def test_the_weight_depends_on_the_loss_alone(make_pool):
    weighting, losses = started(make_pool), torch.tensor([0.3, 1.1, 0.3])
    assert isinstance(weighting, PredictionWeighting), "else the pool is not weighed anew at the end"
    one, other = (weighting.weigh(losses, p) for p in (torch.full((3, 10), 0.1), torch.eye(10)[:3]))
    assert torch.equal(one, other)
    assert one[0] == one[2] != one[1]
    assert not one.requires_grad


def test_the_state_goes_into_a_new_object_and_on_from_there(make_pool, make_signal):
    one, other = started(make_pool), started(make_pool)
    index, losses = torch.arange(4), torch.tensor([0.2, 0.9, 1.5, 3.0])

    def visit(weighting):
        weighting.observe(index, losses, torch.full((4, 10), 0.1))
        weighting.update(index, make_signal([1.0, -1.0, 2.0, 0.5], losses=losses))

    for _ in range(3):
        visit(one)
    other.load_state_dict({name: value.clone() for name, value in one.state_dict().items()})
    assert torch.equal(one.batch(torch.arange(30)).weight, other.batch(torch.arange(30)).weight)
    visit(other)
    before = one.batch(index).weight
    visit(one)
    assert torch.equal(one.batch(index).weight, other.batch(index).weight)
    assert not torch.equal(one.batch(index).weight, before)
