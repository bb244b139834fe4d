"""Checks 1, 4 and 8 for the last layer: closed forms against autograd, errors for wrong inputs, no graph."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wrssl.api import DataError, OptionError
from wrssl.hypergrad import (
    LOSSES,
    HeadProblem,
    HeadRows,
    NetworkProblem,
    automatic,
    head_hypergradient,
    implicit_hypergradient,
)


def close(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=["ce", "mse", "kl", "entropy"])
def loss(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["bias", "no bias"])
def case(request, loss, head_arguments, head_problem):
    """A head problem with λ = 3, μ = 0.2, δ = 0, and the same three losses written down with autograd."""
    W, b, h_l, y_l, h_u, t, w, h_v, y_v = head_arguments()
    if not request.param:
        b = None
    problem = head_problem(W, b, h_l, y_l, h_u, t, w, h_v, y_v, zloss=loss, coef=3.0, ridge=0.2)

    def logits(theta, h):
        return h @ theta.T if b is None else h @ theta[:, :-1].T + theta[:, -1]

    def r(theta):
        return LOSSES[loss].value(logits(theta, h_u), t)

    def train(theta):
        return F.cross_entropy(logits(theta, h_l), y_l) + 3.0 * (w * r(theta)).mean() + 0.1 * theta.square().sum()

    return problem, train, r, lambda theta: F.cross_entropy(logits(theta, h_v), y_v)


def test_losses_gradients_and_curvature_equal_autograd(case, randn):
    problem, train, _, validation = case
    theta = problem.start().requires_grad_()
    u = randn(*theta.shape, seed=50)
    close(problem.train_loss(theta.detach()), train(theta).detach())
    close(problem.validation_loss(theta.detach()), validation(theta).detach())
    close(problem.validation_gradient(theta.detach()), torch.autograd.grad(validation(theta), theta)[0])
    (gradient,) = torch.autograd.grad(train(theta), theta, create_graph=True)
    close(problem.train_gradient(theta.detach()), gradient.detach())
    close(problem.curvature(theta.detach())(u), torch.autograd.grad((gradient * u).sum(), theta)[0])


def test_mixed_term_is_double_backward_and_forward_mode(case, randn):
    problem, train, r, _ = case
    theta = problem.start().requires_grad_()
    q = randn(*theta.shape, seed=51)
    closed = problem.mixed(theta.detach(), q)
    # double backward: −d/dw ⟨∇_θ L_T(θ, w), q⟩, by a linear function of w
    weights = problem.w.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(3.0 * (weights * r(theta)).mean(), theta, create_graph=True)
    close(closed, -torch.autograd.grad((gradient * q).sum(), weights)[0])
    # forward mode, all examples at once
    network = NetworkProblem(
        {"theta": theta}, lambda p: train(p["theta"]), lambda p: r(p["theta"]), train, weights, coef=3.0
    )
    close(closed, network.mixed(theta.detach().reshape(-1), q.reshape(-1)))


def test_the_defaults_are_cross_entropy_with_coefficient_one(head_arguments, randn, head_problem):
    """λ = 1, no ridge, no damping, the exact Hessian; in ``head_hypergradient`` too."""
    W, b, h_l, y_l, h_u, t, w, *_ = arguments = head_arguments()
    problem, stated = head_problem(*arguments), head_problem(*arguments, zloss="ce", coef=1.0, ridge=0.0, damping=0.0)
    theta = problem.start()
    r = F.cross_entropy(F.linear(h_u, W, b), t, reduction="none")
    close(problem.train_loss(theta), F.cross_entropy(F.linear(h_l, W, b), y_l) + (w * r).mean())
    u = randn(*theta.shape, seed=52)
    assert torch.equal(problem.train_gradient(theta), stated.train_gradient(theta))
    assert torch.equal(problem.curvature(theta)(u), stated.curvature(theta)(u))
    plain = implicit_hypergradient(stated, "exact").gradient
    assert torch.equal(head_hypergradient(*arguments), plain)
    other = implicit_hypergradient(head_problem(*arguments, zloss="mse", curvature="gauss-newton"), "exact").gradient
    assert torch.equal(head_hypergradient(*arguments, loss="mse", curvature="gauss-newton"), other)


def test_the_tensors_have_names_and_the_options_are_keyword_only(head_arguments):
    arguments, names = head_arguments(), ("W", "b", "h_l", "y_l", "h_u", "targets", "w", "h_v", "y_v")
    named = dict(zip(names, arguments, strict=True))
    assert torch.equal(head_hypergradient(**named, ridge=0.1), head_hypergradient(*arguments, ridge=0.1))
    W, b, h_l, y_l, h_u, targets, w, h_v, y_v = arguments
    rows = {"labeled": HeadRows(h_l, y_l), "unlabeled": HeadRows(h_u, targets), "validation": HeadRows(h_v, y_v)}
    by_name, by_place = HeadProblem(W=W, b=b, **rows, w=w), HeadProblem(W, b, *rows.values(), w)
    assert torch.equal(implicit_hypergradient(by_name).gradient, implicit_hypergradient(by_place).gradient)
    for function, given in ((head_hypergradient, arguments), (HeadProblem, (W, b, *rows.values(), w))):
        with pytest.raises(TypeError, match="positional"):
            function(*given, "ce")


@pytest.mark.parametrize(("ridge", "damping"), [(0.0, 0.0), (0.2, 0.0), (0.0, 0.3), (0.2, 0.3)])
@pytest.mark.parametrize("bias", [True, False])
def test_gauss_newton_is_the_sum_over_the_rows(loss, bias, ridge, damping, head_arguments, randn, head_problem):
    """``Σ_i c_i M_i q h_i h_iᵀ + (μ + δ) q``, row by row; M is S for ce and kl, (2/C) S² for mse, 0 for entropy."""
    W, b, h_l, y_l, h_u, t, w, h_v, y_v = head_arguments()
    t = 3 * t if loss == "ce" else t  # targets that sum to 3: M = 3 S
    options = {"zloss": loss, "coef": 2.0, "ridge": ridge, "damping": damping, "curvature": "gauss-newton"}
    problem = head_problem(W, b if bias else None, h_l, y_l, h_u, t, w, h_v, y_v, **options)
    theta = problem.start()
    q = randn(*theta.shape, seed=53)
    expected = (ridge + damping) * q
    for h, c, labeled in [(h, 1 / 24, True) for h in h_l] + [
        (h, 2 / 30 * w_j, False) for h, w_j in zip(h_u, w, strict=True)
    ]:
        row = torch.cat([h, h.new_ones(1)]) if bias else h
        p = (theta @ row).softmax(0)
        S = torch.diag(p) - torch.outer(p, p)
        M = S if labeled else {"ce": 3 * S, "kl": S, "mse": 2 / 3 * S @ S, "entropy": 0 * S}[loss]
        expected = expected + c * torch.outer(M @ (q @ row), row)
    close(problem.curvature(theta)(q), expected)


def test_gauss_newton_is_positive_semidefinite(loss, head):
    problem = head(zloss=loss, curvature="gauss-newton", ridge=0.0, coef=20.0)
    product, theta = problem.curvature(problem.start()), problem.start()
    rows = [product(e.view_as(theta)).reshape(-1) for e in torch.eye(theta.numel(), dtype=theta.dtype)]
    matrix = torch.stack(rows)
    close(matrix, matrix.T)
    assert torch.linalg.eigvalsh(matrix).min() > -1e-12


def test_automatic_loss_gives_the_same_hypergradient(loss, head):
    closed, auto = (
        implicit_hypergradient(head(zloss=z), "exact", lookahead=3).gradient
        for z in (loss, automatic(LOSSES[loss].value))
    )
    close(closed, auto, 1e-10)


def test_head_and_network_agree_on_a_linear_model(head_arguments, head_problem):
    W, b, h_l, y_l, h_u, t, w, h_v, y_v = head_arguments()
    head = head_problem(W, b, h_l, y_l, h_u, t, w, h_v, y_v, zloss="mse", coef=2.0, ridge=0.1, damping=0.3)
    network = NetworkProblem(
        {"W": W, "b": b},
        lambda p: F.cross_entropy(F.linear(h_l, p["W"], p["b"]), y_l),
        lambda p: (F.linear(h_u, p["W"], p["b"]).softmax(1) - t).square().mean(1),
        lambda p: F.cross_entropy(F.linear(h_v, p["W"], p["b"]), y_v),
        w,
        coef=2.0,
        ridge=0.1,
        damping=0.3,
    )
    for solver, options in (("exact", {}), ("cg", {}), ("neumann", {"alpha": 0.5, "terms": 5})):
        for mixed_at in ("start", "end"):
            one, other = (
                implicit_hypergradient(p, solver, lookahead=3, step=0.5, mixed_at=mixed_at, **options)
                for p in (head, network)
            )
            close(one.gradient, other.gradient, 1e-10)
            close(one.stationarity, other.stationarity, 1e-10)


def test_permuting_the_pool_permutes_the_hypergradient(head_arguments, randn):
    W, b, h_l, y_l, h_u, t, w, h_v, y_v = head_arguments()
    order = randn(len(w), seed=60).argsort()
    plain = head_hypergradient(W, b, h_l, y_l, h_u, t, w, h_v, y_v, ridge=0.1, lookahead=2)
    moved = head_hypergradient(W, b, h_l, y_l, h_u[order], t[order], w[order], h_v, y_v, ridge=0.1, lookahead=2)
    close(plain[order], moved, 1e-10)


def test_no_graph_is_kept_and_nothing_is_changed(head_arguments):
    tensors = head_arguments()
    attached = [x.requires_grad_() if x.is_floating_point() else x for x in (y.clone() for y in tensors)]
    for solver in ("exact", "cg", "neumann"):
        g = head_hypergradient(*attached, ridge=0.1, solver=solver, lookahead=3)
        assert not g.requires_grad
        assert g.grad_fn is None
    assert all(torch.equal(x, y) for x, y in zip(tensors, attached, strict=True))
    assert all(x.grad is None for x in attached)


def test_model_is_bit_identical_after_the_look_ahead(head_arguments, head_problem):
    _, _, h_l, y_l, h_u, t, w, h_v, y_v = head_arguments()
    layer = nn.utils.skip_init(nn.Linear, 5, 3).double()
    with torch.no_grad():
        layer.weight.copy_(head_arguments()[0])
        layer.bias.copy_(head_arguments()[1])
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    problem = head_problem(layer.weight, layer.bias, h_l, y_l, h_u, t, w, h_v, y_v, ridge=0.1)
    first = implicit_hypergradient(problem, "neumann", lookahead=10).gradient
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert torch.equal(first, implicit_hypergradient(problem, "neumann", lookahead=10).gradient)


def test_without_a_bias_theta_is_a_copy_too(head_arguments, head_problem):
    W, _, *rest = head_arguments()
    before, problem = W.clone(), head_problem(W, None, *rest)
    problem.start().zero_()
    assert torch.equal(problem.start(), before)
    assert torch.equal(W, before)
    assert problem.start().shape == W.shape


def test_by_hand(head_problem):
    # One feature h = 1, two classes, W = 0: p = (½, ½). Labeled and validation class 0, target class 1, w = 1, μ = 1.
    # ∇L_T = (−½, ½) + (½, −½) = 0: stationary. On (1, −1), H = 2·½ + 1 = 2. v = (−½, ½), q = (−¼, ¼).
    # dL_V/dw = −⟨(½, −½), q⟩ = ¼: this example hurts. P = 0 with α = 1: ½.
    one, zero = torch.ones(1, 1, dtype=torch.float64), torch.tensor([0])
    arguments = (torch.zeros(2, 1, dtype=torch.float64), None, one, zero, one)
    arguments += (torch.tensor([[0.0, 1.0]], dtype=torch.float64), torch.ones(1, dtype=torch.float64), one, zero)
    for options in ({"solver": "exact"}, {"solver": "cg"}, {"solver": "neumann", "terms": 60}):
        close(head_hypergradient(*arguments, ridge=1.0, **options), torch.tensor([0.25], dtype=torch.float64))
    p0 = head_hypergradient(*arguments, ridge=1.0, solver="neumann", terms=0, alpha=1.0)
    close(p0, torch.tensor([0.5], dtype=torch.float64))
    estimate = implicit_hypergradient(head_problem(*arguments, ridge=1.0), "exact", lookahead=3)
    close(estimate.stationarity, torch.tensor(0.0, dtype=torch.float64))
    close(estimate.largest_eigenvalue, torch.tensor(2.0, dtype=torch.float64), 1e-4)
    close(
        head_problem(*arguments, coef=4.0).mixed(arguments[0], torch.eye(2, dtype=torch.float64)[:, :1]),
        torch.tensor([-2.0], dtype=torch.float64),
    )


def test_float32_and_half_features_work(head_arguments):
    W, b, h_l, y_l, h_u, t, w, h_v, y_v = head_arguments()
    reference = head_hypergradient(W, b, h_l, y_l, h_u, t, w, h_v, y_v, ridge=0.1, solver="cg", iterations=10)
    low = [x.bfloat16() for x in (h_l, h_u, h_v)]
    g = head_hypergradient(
        *(W.float(), b.float(), low[0], y_l, low[1], t.float(), w, low[2], y_v), ridge=0.1, solver="cg", iterations=10
    )
    assert g.dtype == torch.float32
    assert F.cosine_similarity(g.double(), reference, dim=0) > 0.999


@pytest.mark.parametrize("shape", [(30, 1), (29,), (1, 30), ()])
def test_weights_of_another_shape_are_refused(head_arguments, head, shape):
    arguments = list(head_arguments())
    arguments[6] = torch.ones(shape, dtype=torch.float64)
    with pytest.raises(DataError, match=r"one weight per example"):
        head_hypergradient(*arguments)
    with pytest.raises(DataError, match=r"one weight per example"):
        head().with_weights(arguments[6])
    if shape not in ((29,), ()):
        with pytest.raises(DataError, match=r"one weight per example"):
            NetworkProblem({"W": arguments[0]}, torch.sum, torch.sum, torch.sum, arguments[6])


def test_other_mistakes_are_refused_with_a_sentence(head_arguments):
    good = head_arguments()

    def with_argument(position, value, **options):
        return head_hypergradient(*good[:position], value, *good[position + 1 :], **options)

    with pytest.raises(DataError, match="last layer of 5 inputs"):
        with_argument(2, good[2][:, :4])
    with pytest.raises(DataError, match="class numbers from 0 to 2"):
        with_argument(3, good[3] + 1)
    for position in (3, 8):
        with pytest.raises(DataError, match="class numbers from 0 to 2"):
            with_argument(position, good[position] - 1)
        with_argument(position, good[position].clamp(1, 2))  # a class may be missing
    with pytest.raises(DataError, match="class numbers"):
        with_argument(8, F.one_hot(good[8], 3))
    with pytest.raises(DataError, match="one_hot"):
        with_argument(5, good[5].argmax(1))
    with pytest.raises(DataError, match="validation"):
        head_hypergradient(*good[:7], good[7][:0], good[8][:0])
    for options, remedy in (
        ({"loss": "hinge"}, "use one of ce, mse, kl, entropy"),
        ({"solver": "lu"}, "choose one of neumann, cg, exact"),
        ({"curvature": "fisher"}, 'use "exact" or "gauss-newton"'),
        ({"mixed_at": "middle"}, 'use "start" or "end"'),
    ):
        with pytest.raises(OptionError, match=remedy):
            head_hypergradient(*good, **options)


def test_an_empty_pool_or_no_labels_are_fine(head_arguments):
    W, b, h_l, y_l, h_u, t, w, h_v, y_v = head_arguments()
    assert head_hypergradient(W, b, h_l, y_l, h_u[:0], t[:0], w[:0], h_v, y_v, ridge=0.1).shape == (0,)
    for curvature in ("exact", "gauss-newton"):
        g = head_hypergradient(W, b, h_l[:0], y_l[:0], h_u, t, w, h_v, y_v, ridge=0.1, curvature=curvature)
        assert g.shape == w.shape
        assert torch.isfinite(g).all()
