"""Checks 4, 5 and 8 for a whole network: a small convolutional net, evaluated by ``functional_call``."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from wrssl.api import DataError, OptionError
from wrssl.hypergrad import NetworkProblem, check_one_step, implicit_hypergradient, stationary_point
from wrssl.hypergrad.solvers import dense

COEF, ETA = 2.0, 0.3


@pytest.fixture
def net(randn):
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(3, 4, 2),
        nn.Softplus(),
        nn.Flatten(),
        nn.Linear(16, 3),
    ).double()
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(0.4 * randn(*p.shape, seed=i))
    return model


@pytest.fixture
def batches(randn):
    x_l, x_u, x_v = (randn(n, 1, 8, 8, seed=20 + n) for n in (9, 12, 10))
    return x_l, torch.arange(9) % 3, x_u, randn(12, 3, seed=40).softmax(1), x_v, torch.arange(10) % 3


@pytest.fixture
def problem(net, batches, randn):
    x_l, y_l, x_u, t, x_v, y_v = batches

    def logits(params, x):
        return functional_call(net, params, (x,))

    return NetworkProblem(
        dict(net.named_parameters()),
        lambda p: F.cross_entropy(logits(p, x_l), y_l),
        lambda p: (logits(p, x_u).softmax(1) - t).square().mean(1),
        lambda p: F.cross_entropy(logits(p, x_v), y_v),
        torch.rand(12, generator=torch.Generator().manual_seed(3), dtype=torch.float64),
        coef=COEF,
        damping=0.05,
    )


def flat(tensors):
    return torch.cat([x.reshape(-1) for x in tensors])


def autograd_losses(net, batches, w):
    x_l, y_l, x_u, t, x_v, y_v = batches
    r = (net(x_u).softmax(1) - t).square().mean(1)
    return F.cross_entropy(net(x_l), y_l) + COEF * (w * r).mean(), F.cross_entropy(net(x_v), y_v)


def test_everything_equals_double_backward(problem, net, batches, randn):
    w = problem.w.clone().requires_grad_()
    train, validation = autograd_losses(net, batches, w)
    theta, parameters = problem.start(), list(net.parameters())
    u = randn(theta.numel(), seed=70)
    gradient = flat(torch.autograd.grad(train, parameters, create_graph=True))
    hvp = flat(torch.autograd.grad((gradient * u).sum(), parameters, retain_graph=True))
    (mixed,) = torch.autograd.grad((gradient * u).sum(), w)
    for ours, theirs in (
        (problem.train_loss(theta), train),
        (problem.validation_loss(theta), validation),
        (problem.train_gradient(theta), gradient),
        (problem.validation_gradient(theta), flat(torch.autograd.grad(validation, parameters))),
        (problem.curvature(theta)(u), hvp + 0.05 * u),
        (problem.mixed(theta, u), -mixed),
    ):
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-11, atol=1e-12)


def test_lemma_1_by_autograd_through_one_step(problem, net, batches):
    w = problem.w.clone().requires_grad_()
    train, _ = autograd_losses(net, batches, w)
    names, parameters = zip(*net.named_parameters(), strict=True)
    gradients = torch.autograd.grad(train, parameters, create_graph=True)
    stepped = {n: p - ETA * g for n, p, g in zip(names, parameters, gradients, strict=True)}
    (truth,) = torch.autograd.grad(F.cross_entropy(functional_call(net, stepped, (batches[4],)), batches[5]), w)
    options = {"terms": 0, "lookahead": 1, "step": ETA}
    start = implicit_hypergradient(problem, "neumann", mixed_at="start", **options).gradient
    end = implicit_hypergradient(problem, "neumann", mixed_at="end", **options).gradient
    assert float((start - truth).norm() / truth.norm()) < 1e-12
    assert float((end - truth).norm() / truth.norm()) > 1e-3


def test_lemma_1_by_finite_differences(problem):
    result = check_one_step(problem, ETA)
    assert result.passed
    assert result.relative_error < 1e-7
    assert len(result.estimated) == 8


def test_both_orders_of_derivatives_give_the_same_products(problem, randn):
    theta, u = problem.start(), randn(problem.start().numel(), seed=71)
    forward = problem.curvature(theta)
    problem.hessian = "reverse"
    reverse = problem.curvature(theta)
    for _ in range(2):  # the graph survives the first product
        torch.testing.assert_close(forward(u), reverse(u), rtol=1e-12, atol=1e-12)
    assert not reverse(u).requires_grad
    torch.testing.assert_close(dense(forward, theta), dense(reverse, theta), rtol=1e-10, atol=1e-12)
    with pytest.raises(OptionError, match="forward"):
        NetworkProblem({"w": u}, torch.sum, torch.sum, torch.sum, u, hessian="mixed")


@pytest.mark.parametrize(("order", "passes"), [("forward", 3), ("reverse", 1)])
def test_reverse_over_reverse_evaluates_the_loss_once_for_all_products(problem, order, passes):
    calls, labeled = [], problem.labeled
    problem.labeled, problem.hessian = lambda params: calls.append(0) or labeled(params), order
    product = problem.curvature(problem.start())
    for _ in range(3):
        product(problem.start())
    assert len(calls) == passes


def test_the_three_solvers_agree_near_a_minimum(problem):
    convex = problem.at(problem.start())
    convex.damping = 3.0  # above every negative eigenvalue of this small network
    exact, cg, series = (
        implicit_hypergradient(convex, name, **options).gradient
        for name, options in (("exact", {}), ("cg", {}), ("neumann", {"terms": 120}))
    )
    torch.testing.assert_close(cg, exact, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(series, exact, rtol=1e-7, atol=1e-9)


def test_a_trained_network_obeys_the_implicit_function_theorem(problem):
    ridge = problem.at(problem.start())
    ridge.ridge, ridge.damping = 0.5, 0.0
    ridge = ridge.at(stationary_point(ridge, tolerance=1e-11))
    g = implicit_hypergradient(ridge, "exact").gradient
    for j in (0, 7):
        losses = []
        for change in (1e-4, -1e-4):
            w = ridge.w.clone()
            w[j] += change
            moved = ridge.with_weights(w)
            losses.append(moved.validation_loss(stationary_point(moved, tolerance=1e-11)))
        assert float(g[j]) == pytest.approx(float(losses[0] - losses[1]) / 2e-4, rel=1e-5)


def test_model_is_bit_identical_afterwards_and_no_graph_is_kept(problem, net):
    before = {name: value.clone() for name, value in net.state_dict().items()}
    estimate = implicit_hypergradient(problem, "neumann", lookahead=3, step=0.05)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())
    assert not estimate.gradient.requires_grad
    assert not estimate.stationarity.requires_grad
    assert estimate.gradient.shape == (12,)


def test_parameters_survive_the_way_through_the_flat_vector(problem, net):
    params = problem.params(problem.start())
    assert list(params) == [name for name, _ in net.named_parameters()]
    assert all(torch.equal(params[name], p) for name, p in net.named_parameters())


@pytest.mark.parametrize("change", [lambda r: r[:5], lambda r: r.unsqueeze(1), torch.mean])
def test_losses_of_another_shape_are_refused(problem, change):
    losses = problem.unlabeled
    problem.unlabeled = lambda params: change(losses(params))
    theta = problem.start()
    for call in (lambda: problem.train_gradient(theta), lambda: problem.mixed(theta, theta)):
        with pytest.raises(DataError, match="one loss per example"):
            call()
