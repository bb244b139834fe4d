"""DS3L against its own algorithm: normalized weights, and the labeled batch itself is behind the outer loss."""

from __future__ import annotations

import pytest
import torch

from wrssl.api import PredictionWeighting
from wrssl.registry import WEIGHTINGS


def started(make_pool, **options):
    weighting = WEIGHTINGS.create("ds3l", options)
    weighting.setup(make_pool())
    return weighting


def close(ours, theirs):
    """Equal up to 10⁻⁹ of the largest entry."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9 * float(theirs.abs().max()))


@pytest.mark.parametrize("scope", ["network", "head"])
@pytest.mark.parametrize("outer", ["labeled", "validation"])
@pytest.mark.parametrize("method", ["entmin", "pl"])
def test_training_steps_are_those_of_the_paper(one_step, method, outer, scope):
    """θ̂ = θ − η ∇[CE + λ Σ w r / Σ w], Φ ← Adam(∇_Φ CE(θ̂)), and the real step uses the new Φ."""
    lab = one_step("ds3l", method, scope=scope, outer=outer, meta_lr=0.02, inner_lr=0.3)
    phi = lab.weigh_in_double()
    adam = torch.optim.Adam(phi, lr=0.02)
    for number in range(3):
        lab.rate = 0.1 * (number + 1)  # η stays what it is
        theta, index = lab.theta(), lab.batch(number).index
        r, p = lab.losses(theta, number), lab.logits(theta, lab.batch(number).x_u).softmax(1).detach()
        before = lab.weigh(phi, p)
        term = (before * r).sum() / before.sum()
        ahead = lab.ahead(theta, lab.labeled(theta, number) + lab.coef * term, 0.3)
        gradients = torch.autograd.grad(getattr(lab, outer)(ahead, number), phi)
        for parameter, g in zip(phi, gradients, strict=True):
            parameter.grad = g
        adam.step()
        after = lab.weigh(phi, p).detach()
        expected = lab.trained(theta, number, 8 * after / after.sum())

        lab.take(number)
        for parameter, q, g in zip(lab.weighting.net.parameters, phi, gradients, strict=True):
            close(parameter.grad, g)
            torch.testing.assert_close(parameter.detach(), q.detach(), rtol=0, atol=1e-9)
        assert max(float(g.abs().max()) for g in gradients) > 1e-5
        for parameter, q in zip(lab.net.module.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.detach(), q, rtol=0, atol=1e-9)
        torch.testing.assert_close(lab.weighting.batch(index).weight, after, rtol=0, atol=1e-9)
        assert (after - before).abs().max() > 1e-3  # the old weights would have been noticed


def test_the_labeled_batch_is_the_outer_loss_without_a_validation_set(one_step):
    lab = one_step("ds3l", scope="network")
    lab.take(0, validation=False)
    assert all(p.grad.abs().max() > 0 for p in lab.weighting.net.parameters[:2])


@pytest.mark.parametrize("seed", range(3))
def test_factors_and_their_derivative_are_those_of_the_quotient(seed, make_pool):
    """mean(f r) = Σ w r / Σ w; where g = dL/df, ``through`` gives dL/dw."""
    weighting, index = started(make_pool), torch.tensor([9, 3, 14, 1, 22])
    generator = torch.Generator().manual_seed(seed)
    w, r = torch.rand(2, 5, generator=generator, dtype=torch.float64)
    weighting.table = torch.zeros(30, dtype=torch.float64)
    weighting.table[index] = w
    leaf = w.clone().requires_grad_()
    quotient = (leaf * r).sum() / leaf.sum()
    torch.testing.assert_close((weighting.batch(index).factor * r).mean(), quotient.detach(), rtol=1e-12, atol=0)
    (slope,) = torch.autograd.grad(quotient, leaf)
    torch.testing.assert_close(weighting.through(index, r / 5), slope, rtol=0, atol=1e-12)
    g = torch.randn(5, generator=generator, dtype=torch.float64)
    (slope,) = torch.autograd.grad(5 * leaf / leaf.sum(), leaf, g)
    torch.testing.assert_close(weighting.through(index, g), slope, rtol=0, atol=1e-12)
    assert slope.abs().max() > 0.1


def test_the_pool_cannot_be_switched_off_as_a_whole(make_pool, make_signal):
    """Equal gradients move nothing, however large they are; factors have mean 1."""
    weighting, index = started(make_pool, meta_lr=0.1), torch.arange(4)
    p = torch.rand(4, 10, generator=torch.Generator().manual_seed(0)).softmax(1)
    weighting.observe(index, torch.ones(4), p)
    assert torch.allclose(weighting.through(index, torch.full((4,), 100.0)), torch.zeros(4), atol=1e-3)
    weighting.update(index, make_signal([2.0, -1.0, 1.0, 0.0], probabilities=p))
    assert weighting.batch(index).factor.mean().item() == pytest.approx(1, abs=1e-6)


def test_weights_that_are_all_zero_break_nothing(make_pool):
    weighting, index = started(make_pool), torch.arange(4)
    weighting.table.zero_()
    assert weighting.batch(index).factor.tolist() == [0.0] * 4
    assert weighting.through(index, torch.tensor([1.0, 2.0, 3.0, 4.0])).isfinite().all()


def test_the_weight_depends_on_the_prediction_alone(make_pool):
    weighting, p = started(make_pool), torch.eye(10)[[1, 1, 4]]
    assert isinstance(weighting, PredictionWeighting), "else the pool is not weighed anew at the end"
    one, other = (weighting.weigh(losses, p) for losses in (torch.zeros(3), torch.tensor([1.0, 2.0, 3.0])))
    assert torch.equal(one, other)
    assert one[0] == one[1] != one[2]


def test_the_state_goes_into_a_new_object_and_on_from_there(make_pool, make_signal):
    one, other = started(make_pool), started(make_pool)
    index = torch.arange(4)
    p = torch.rand(4, 10, generator=torch.Generator().manual_seed(0)).softmax(1)

    def visit(weighting):
        weighting.observe(index, torch.ones(4), p)
        weighting.update(index, make_signal([1.0, -1.0, 2.0, 0.5], probabilities=p))

    for _ in range(3):
        visit(one)
    other.load_state_dict({name: value.clone() for name, value in one.state_dict().items()})
    before = one.batch(index).weight
    visit(one)
    visit(other)
    assert torch.equal(one.batch(index).weight, other.batch(index).weight)
    assert not torch.equal(one.batch(index).weight, before)
