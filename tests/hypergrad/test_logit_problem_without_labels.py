"""The unlabeled term alone: a method that mixes labeled rows into its own loss has no other term."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, jacrev

from wrssl.hypergrad import LogitProblem, LogitRows, implicit_hypergradient
from wrssl.hypergrad.solvers import dense

COEF, RIDGE, DAMPING = 1.7, 0.03, 0.05
N, N_V, C = 7, 5, 3


def softmax_matrix(z):
    p = z.softmax(-1)
    return torch.diag(p) - torch.outer(p, p)


# Each loss and its Gauss-Newton matrix in the logits, written out.
LOSS = {
    "ce": lambda z, t: F.cross_entropy(z, t, reduction="none"),
    "mse": lambda z, t: (z.softmax(1) - t).square().mean(1),
}
MATRIX = {"ce": softmax_matrix, "mse": lambda z: 2 / C * softmax_matrix(z) @ softmax_matrix(z)}


class Rows:
    """A small network, its pool and its validation rows."""

    def __init__(self, randn):
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, C)).double()
        with torch.no_grad():
            for number, p in enumerate(self.model.parameters()):
                p.copy_(0.6 * randn(*p.shape, seed=number))
        self.parameters = {name: p.detach() for name, p in self.model.named_parameters()}
        self.x_u, self.x_v, self.y_v = randn(N, 3, seed=30), randn(N_V, 3, seed=31), torch.arange(N_V) % C
        self.targets, self.w = randn(N, C, seed=50).softmax(1), torch.linspace(0, 1, N, dtype=torch.float64)

    def logits(self, x):
        return lambda parameters: functional_call(self.model, parameters, (x,))

    def problem(self, loss, labeled=None, **options):
        rows = LogitRows(self.logits(self.x_u), self.targets), LogitRows(self.logits(self.x_v), self.y_v)
        return LogitProblem(self.parameters, labeled, *rows, self.w, zloss=loss, coef=COEF, **options)

    def by_hand(self, loss, problem, ridge=0.0):
        """L_T as a function of θ: (λ/B) Σ_j w_j r_j + (μ/2)‖θ‖², and nothing else."""

        def value(theta):
            r = LOSS[loss](self.logits(self.x_u)(problem.params(theta)), self.targets)
            return COEF / N * (self.w @ r) + ridge / 2 * (theta @ theta)

        return value


@pytest.fixture
def rows(randn):
    with torch.random.fork_rng(devices=[]):
        return Rows(randn)


@pytest.mark.parametrize("ridge", [0.0, RIDGE])
@pytest.mark.parametrize("loss", LOSS)
def test_loss_and_gradient_are_those_of_the_pool(rows, loss, ridge):
    problem = rows.problem(loss, ridge=ridge)
    by_hand, theta = rows.by_hand(loss, problem, ridge), problem.start() + 0.01
    torch.testing.assert_close(problem.train_loss(theta), by_hand(theta), rtol=1e-12, atol=1e-14)
    gradient = problem.train_gradient(theta)
    torch.testing.assert_close(gradient, grad(by_hand)(theta), rtol=1e-11, atol=1e-13)
    assert gradient.norm() > 1e-2
    assert not gradient.requires_grad


@pytest.mark.parametrize("loss", LOSS)
def test_curvature_is_the_gauss_newton_matrix_of_the_pool(rows, loss):
    problem = rows.problem(loss, ridge=RIDGE, damping=DAMPING)
    theta = problem.start()
    logits = lambda t: rows.logits(rows.x_u)(problem.params(t))  # noqa: E731
    matrix = (RIDGE + DAMPING) * torch.eye(theta.numel(), dtype=theta.dtype)
    for w, z, jacobian in zip(rows.w, logits(theta), jacrev(logits)(theta), strict=True):
        matrix += COEF / N * w * jacobian.T @ MATRIX[loss](z) @ jacobian
    torch.testing.assert_close(dense(problem.curvature(theta), theta), matrix, rtol=0, atol=1e-11)
    assert torch.linalg.eigvalsh(matrix).max() > 2 * (RIDGE + DAMPING)


@pytest.mark.parametrize("loss", LOSS)
def test_mixed_term_is_the_derivative_of_the_gradient_by_the_weights(rows, loss, randn):
    """−⟨∂∇L_T/∂w_j, q⟩, from a Jacobian."""
    problem = rows.problem(loss)
    theta = problem.start()
    q = randn(theta.numel(), seed=60)

    def along(w):
        r = lambda t: LOSS[loss](rows.logits(rows.x_u)(problem.params(t)), rows.targets)  # noqa: E731
        return -grad(lambda t: COEF / N * (w @ r(t)))(theta) @ q

    torch.testing.assert_close(problem.mixed(theta, q), grad(along)(rows.w), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("solver", ["exact", "cg", "neumann"])
def test_labeled_rows_without_gradient_change_nothing(rows, solver):
    """Logits that do not depend on θ: a labeled term that adds a constant to L_T must give the same estimate."""
    still = rows.logits(rows.x_u)(rows.parameters)
    idle = LogitRows(lambda parameters: still + 0 * parameters["0.weight"].sum(), torch.arange(N) % C)
    options = {"terms": 4} if solver == "neumann" else {}
    estimates = [
        implicit_hypergradient(rows.problem("mse", labeled, damping=0.1), solver, lookahead=2, **options)
        for labeled in (None, idle)
    ]
    torch.testing.assert_close(estimates[0].gradient, estimates[1].gradient, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(estimates[0].stationarity, estimates[1].stationarity, rtol=1e-9, atol=0)
    assert estimates[0].gradient.abs().max() > 1e-6


def test_one_step_equals_differentiating_through_it(rows):
    """J = 1, P = 0, at the start: dL_V(θ − η ∇L_T(θ, w))/dw, by autograd through the step."""
    problem, eta = rows.problem("ce"), 0.3
    estimate = implicit_hypergradient(problem, "neumann", terms=0, lookahead=1, step=eta, mixed_at="start")
    theta, w = problem.start().requires_grad_(), rows.w.clone().requires_grad_()
    r = LOSS["ce"](rows.logits(rows.x_u)(problem.params(theta)), rows.targets)
    (slope,) = torch.autograd.grad(COEF * (w * r).mean(), theta, create_graph=True)
    ahead = problem.params(theta - eta * slope)
    (expected,) = torch.autograd.grad(F.cross_entropy(rows.logits(rows.x_v)(ahead), rows.y_v), w)
    torch.testing.assert_close(estimate.gradient, expected, rtol=1e-10, atol=1e-13)
