"""All parameters with the Gauss-Newton matrix, against the matrix itself, built from Jacobians row by row."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, jacrev

from wrssl.api import DataError
from wrssl.hypergrad import (
    LOSSES,
    HeadProblem,
    HeadRows,
    LogitProblem,
    LogitRows,
    NetworkProblem,
    automatic,
    implicit_hypergradient,
)
from wrssl.hypergrad.solvers import dense

COEF, RIDGE, DAMPING = 1.7, 0.03, 0.05
N_L, N_U, N_V, C = 6, 7, 5, 3

# Each loss a second time, by functions of torch.
BY_TORCH = {
    "ce": lambda z, t: F.cross_entropy(z, t, reduction="none"),
    "mse": lambda z, t: (z.softmax(1) - t).square().mean(1),
    "kl": lambda z, t: F.kl_div(t.log(), z.log_softmax(1), reduction="none", log_target=True).sum(1),
    "entropy": lambda z, t: torch.special.entr(z.softmax(1)).sum(1),
}


def softmax_matrix(z):
    p = z.softmax(-1)
    return torch.diag(p) - torch.outer(p, p)


# H_z of one row: the Hessian for ce, what is left of it where the loss has its minimum for mse and kl, nothing for a
# concave loss.
MATRIX = {
    "ce": softmax_matrix,
    "mse": lambda z: 2 / C * softmax_matrix(z) @ softmax_matrix(z),
    "kl": softmax_matrix,
    "entropy": lambda z: torch.zeros(C, C, dtype=z.dtype),
}


class Fixture:
    """A model, three batches, and both problems over them."""

    def __init__(self, model, randn):
        self.model = model.double()
        with torch.no_grad():
            for i, p in enumerate(self.model.parameters()):
                p.copy_(0.6 * randn(*p.shape, seed=i) + (1.0 if p.ndim == 1 else 0.0))
        self.parameters = {name: p.detach() for name, p in self.model.named_parameters()}
        self.x_l, self.x_u, self.x_v = (randn(n, 3, seed=30 + n) for n in (N_L, N_U, N_V))
        self.y_l, self.y_v = torch.arange(N_L) % C, torch.arange(N_V) % C
        self.targets = randn(N_U, C, seed=50).softmax(1)
        self.w = torch.linspace(0, 1, N_U, dtype=torch.float64)

    def logits(self, x):
        return lambda parameters: functional_call(self.model, parameters, (x,))

    def problem(self, zloss="kl", w=None, **options):
        rows = (
            LogitRows(self.logits(self.x_l), self.y_l),
            LogitRows(self.logits(self.x_u), self.targets),
            LogitRows(self.logits(self.x_v), self.y_v),
        )
        return LogitProblem(self.parameters, *rows, self.w if w is None else w, zloss=zloss, coef=COEF, **options)

    def by_torch(self, loss="kl", **options):
        return NetworkProblem(
            self.parameters,
            lambda p: F.cross_entropy(self.logits(self.x_l)(p), self.y_l),
            lambda p: BY_TORCH[loss](self.logits(self.x_u)(p), self.targets),
            lambda p: F.cross_entropy(self.logits(self.x_v)(p), self.y_v),
            self.w,
            coef=COEF,
            **options,
        )


@pytest.fixture
def net(randn):
    """A batch norm with the statistics of its batch, and none that would have to be updated."""
    norm = nn.BatchNorm1d(4, track_running_stats=False)
    return Fixture(nn.Sequential(nn.Linear(3, 4), norm, nn.ReLU(), nn.Linear(4, C)), randn)


def gauss_newton(problem, loss, theta):
    """``Σ_i c_i J_iᵀ H_z J_i``, one example at a time."""
    total = torch.zeros(theta.numel(), theta.numel(), dtype=theta.dtype)
    parts = [(problem.labeled, "ce", theta.new_full((N_L,), 1 / N_L))]
    parts.append((problem.unlabeled, loss, COEF / N_U * problem.w))
    for rows, name, c in parts:
        z = rows.logits(problem.params(theta))
        jacobians = jacrev(lambda t, rows=rows: rows.logits(problem.params(t)))(theta)
        for c_i, z_i, jacobian in zip(c, z, jacobians, strict=True):
            total += c_i * jacobian.T @ MATRIX[name](z_i) @ jacobian
    return total


@pytest.mark.parametrize("loss", LOSSES)
def test_curvature_is_the_gauss_newton_matrix(net, loss):
    problem = net.problem(loss)
    theta = problem.start()
    matrix = dense(problem.curvature(theta), theta)
    torch.testing.assert_close(matrix, gauss_newton(problem, loss, theta), rtol=0, atol=1e-10)
    torch.testing.assert_close(matrix, matrix.T, rtol=0, atol=1e-12)
    values = torch.linalg.eigvalsh(matrix)
    assert values.min() > -1e-12
    assert values.max() > 0.1
    shifted = net.problem(loss, ridge=RIDGE, damping=DAMPING)
    product = shifted.curvature(theta)(theta)
    torch.testing.assert_close(product, matrix @ theta + (RIDGE + DAMPING) * theta, rtol=0, atol=1e-10)


def test_arguments_have_names_and_options_are_keyword_only(net):
    stated = net.problem()
    rows = {name: getattr(stated, name) for name in ("labeled", "unlabeled", "validation")}
    problem = LogitProblem(params=net.parameters, **rows, w=net.w, zloss="kl", coef=COEF)
    assert torch.equal(problem.train_gradient(problem.start()), stated.train_gradient(stated.start()))
    with pytest.raises(TypeError, match="positional"):
        LogitProblem(net.parameters, *rows.values(), net.w, "kl", zloss="kl")


@pytest.mark.parametrize("kind", ["gauss-newton", "exact", "logits", "network"])
@pytest.mark.parametrize(("n_l", "n_u"), [(1, 1), (1, 2), (2, 1)])
def test_one_example_is_divided_by_one(kind, n_l, n_u, head_arguments):
    """Gradient, curvature and mixed term of a linear model on one labeled or one unlabeled example, by autograd.

    With cross-entropy and a linear model the Gauss-Newton matrix is the Hessian.
    """
    W, _, h_l, y_l, h_u, t, w, h_v, y_v = head_arguments(n_l=n_l, n_u=n_u, n_v=2)
    if kind in ("gauss-newton", "exact"):
        rows = HeadRows(h_l, y_l), HeadRows(h_u, t), HeadRows(h_v, y_v)
        problem = HeadProblem(W, None, *rows, w, coef=COEF, ridge=RIDGE, curvature=kind)
    elif kind == "logits":
        rows = [LogitRows(lambda p, h=h: h @ p["W"].T, y) for h, y in ((h_l, y_l), (h_u, t), (h_v, y_v))]
        problem = LogitProblem({"W": W}, *rows, w, zloss="ce", coef=COEF, ridge=RIDGE)
    else:
        functions = (
            lambda p: F.cross_entropy(h_l @ p["W"].T, y_l),
            lambda p: F.cross_entropy(h_u @ p["W"].T, t, reduction="none"),
            lambda p: F.cross_entropy(h_v @ p["W"].T, y_v),
        )
        problem = NetworkProblem({"W": W}, *functions, w, coef=COEF, ridge=RIDGE)

    def train(theta, w=w):
        theta = theta.view(W.shape)
        labeled = sum(F.cross_entropy(theta @ h, y) for h, y in zip(h_l, y_l, strict=True)) / n_l
        r = [F.cross_entropy(theta @ h, target) for h, target in zip(h_u, t, strict=True)]
        return labeled + COEF / n_u * sum(w[j] * r[j] for j in range(n_u)) + RIDGE / 2 * theta.square().sum()

    theta, q = problem.start(), 0.1 * torch.arange(W.numel(), dtype=W.dtype).view(problem.start().shape)
    flat = q.reshape(-1)
    along = lambda w: -grad(train)(theta.reshape(-1), w) @ flat  # noqa: E731
    for ours, theirs in (
        (problem.train_loss(theta), train(theta)),
        (problem.train_gradient(theta).reshape(-1), grad(train)(theta.reshape(-1))),
        (problem.curvature(theta)(q).reshape(-1), jacrev(grad(train))(theta.reshape(-1)) @ flat),
        (problem.mixed(theta, q), grad(along)(w)),
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_gradients_equal_an_independent_formula(net, loss):
    problem = net.problem(loss, ridge=RIDGE)
    theta = problem.start() + 0.01

    def train(t):
        p = problem.params(t)
        r = BY_TORCH[loss](net.logits(net.x_u)(p), net.targets)
        labeled = F.cross_entropy(net.logits(net.x_l)(p), net.y_l)
        return labeled + COEF / N_U * (net.w @ r) + RIDGE / 2 * (t @ t)

    def validation(t):
        return F.cross_entropy(net.logits(net.x_v)(problem.params(t)), net.y_v)

    for ours, theirs in (
        (problem.train_loss(theta), train(theta)),
        (problem.train_gradient(theta), grad(train)(theta)),
        (problem.validation_loss(theta), validation(theta)),
        (problem.validation_gradient(theta), grad(validation)(theta)),
    ):
        assert not ours.requires_grad
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_mixed_term_equals_finite_differences_and_the_network_problem(net, loss, randn):
    problem, h = net.problem(loss), 1e-6
    theta = problem.start()
    q = randn(theta.numel(), seed=60)
    ahead, behind = (
        BY_TORCH[loss](net.logits(net.x_u)(problem.params(theta + sign * h * q)), net.targets) for sign in (1, -1)
    )
    mixed = problem.mixed(theta, q)
    assert mixed.shape == (N_U,)
    torch.testing.assert_close(mixed, -COEF / N_U * (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(mixed, net.by_torch(loss).mixed(theta, q), rtol=1e-11, atol=1e-13)


def test_a_known_gradient_counts_at_the_started_point_only(net):
    problem = net.problem()
    marker = torch.zeros_like(problem.theta)
    scratch = problem.train_gradient(problem.start())
    problem.known = lambda: marker
    theta = problem.start()
    assert problem.train_gradient(theta) is marker
    assert torch.equal(problem.train_gradient(theta.clone()), scratch)
    for other in (problem.with_weights(problem.w), problem.at(theta)):
        assert torch.equal(other.train_gradient(theta), scratch)
        assert torch.equal(other.train_gradient(other.start()), scratch)
    problem.start()
    assert torch.equal(problem.train_gradient(theta), scratch)  # no longer the latest start: computed


def test_the_look_ahead_uses_the_known_gradient_once(net):
    problem, calls = net.problem(), []
    gradient = problem.train_gradient(problem.start())
    plain = implicit_hypergradient(net.problem(), "neumann", terms=2, lookahead=3, step=0.1)
    problem.known = lambda: calls.append(0) or gradient
    told = implicit_hypergradient(problem, "neumann", terms=2, lookahead=3, step=0.1)
    assert len(calls) == 1
    assert torch.equal(told.gradient, plain.gradient)


@pytest.mark.parametrize("count", [1, N_U - 2, N_U + 1])
def test_another_number_of_weights_is_refused_with_a_sentence(net, count):
    """One weight would otherwise be spread over all examples."""
    problem = net.problem(w=torch.ones(count, dtype=torch.float64))
    theta = problem.start()
    for call in (problem.train_gradient, problem.curvature, lambda t: problem.mixed(t, t)):
        with pytest.raises(DataError, match="one weight"):
            call(theta)
    with pytest.raises(DataError, match="one weight"):
        net.problem().with_weights(torch.ones(count))


def test_a_loss_that_is_no_column_of_examples_is_refused(net):
    problem = net.problem(automatic(lambda z, t: z.square().mean()))
    with pytest.raises(DataError, match="one loss per example"):
        problem.train_loss(problem.start())


def test_the_series_without_terms_needs_no_curvature(net, monkeypatch):
    problem, calls = net.problem(), []
    original = LogitProblem.curvature
    monkeypatch.setattr(LogitProblem, "curvature", lambda self, theta: calls.append(0) or original(self, theta))
    estimate = implicit_hypergradient(problem, "neumann", terms=0, lookahead=1, step=0.1)
    assert not calls
    ahead = problem.theta - 0.1 * problem.train_gradient(problem.theta)
    expected = problem.mixed(ahead, 0.1 * problem.validation_gradient(ahead))
    torch.testing.assert_close(estimate.gradient, expected, rtol=1e-12, atol=0)
    implicit_hypergradient(problem, "neumann", terms=1, lookahead=1, step=0.1)
    assert len(calls) == 1


@pytest.mark.parametrize(("solver", "options"), [("neumann", {"terms": 4}), ("cg", {}), ("exact", {})])
def test_one_layer_with_cross_entropy_has_no_other_hessian(randn, solver, options):
    """Logits linear in θ and a loss convex in them: Gauss-Newton is the Hessian, so two codes must agree."""
    layer = Fixture(nn.Linear(3, C), randn)
    problems = [make("ce", ridge=RIDGE, damping=DAMPING) for make in (layer.problem, layer.by_torch)]
    theta = problems[0].start()
    matrices = [dense(problem.curvature(theta), theta) for problem in problems]
    torch.testing.assert_close(*matrices, rtol=0, atol=1e-12)
    estimates = [implicit_hypergradient(p, solver, lookahead=2, **options) for p in problems]
    torch.testing.assert_close(estimates[0].gradient, estimates[1].gradient, rtol=1e-8, atol=1e-12)
    torch.testing.assert_close(estimates[0].stationarity, estimates[1].stationarity, rtol=1e-9, atol=0)
