"""Checks 2, 3, 5, 6, 7 and 9: the estimate against re-training, unrolling and one-step gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from wrssl.api import DivergenceError, HypergradientRequest
from wrssl.hypergrad import (
    SOLVERS,
    cg,
    exact,
    head_hypergradient,
    implicit_hypergradient,
    largest_eigenvalue,
    neumann,
    retrained_gradient,
    solver_options,
    stationary_point,
)
from wrssl.registry import register_solver


def cosine(a, b):
    return float(F.cosine_similarity(a, b, dim=0))


def relative(a, b):
    return float((a - b).norm() / b.norm())


def trained(problem):
    return problem.at(stationary_point(problem))


@pytest.mark.parametrize(("loss", "coef"), [("ce", 1.0), ("ce", 10.0), ("mse", 3.0), ("kl", 0.5), ("entropy", 0.1)])
@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_equals_finite_differences_of_the_retrained_head(head, loss, coef, solver):
    problem = trained(head(zloss=loss, coef=coef))
    indices = range(0, 30, 4)
    truth = retrained_gradient(problem, indices)
    estimate = implicit_hypergradient(problem, solver)
    assert float(estimate.stationarity) < 1e-10
    assert relative(estimate.gradient[list(indices)], truth) < 1e-6


def test_neumann_tends_to_the_exact_hypergradient_as_P_grows(head):
    problem = trained(head())
    truth = implicit_hypergradient(problem, "exact").gradient
    cosines = [
        cosine(implicit_hypergradient(problem, "neumann", terms=P, power_iterations=100).gradient, truth)
        for P in (0, 1, 2, 5, 10, 20, 50)
    ]
    assert cosines == sorted(cosines)
    assert cosines[-1] > 0.99999
    limit = implicit_hypergradient(problem, "neumann", terms=2000).gradient
    assert relative(limit, truth) < 1e-9
    by_cg = implicit_hypergradient(problem, "cg", iterations=5).gradient
    assert cosine(by_cg, truth) > cosines[3]  # at an equal number of products


def test_divergence_is_reported_through_the_estimator(head):
    problem = head()
    largest = float(largest_eigenvalue(problem.curvature(problem.start()), problem.start(), iterations=200)[0])
    with pytest.raises(DivergenceError, match="use alpha below"):
        implicit_hypergradient(problem, "neumann", terms=60, alpha=2.2 / largest)
    assert torch.isfinite(implicit_hypergradient(problem, "neumann", terms=60, alpha=1.9 / largest).gradient).all()


@pytest.mark.parametrize("loss", ["ce", "mse", "kl"])
def test_lemma_1(head, loss):
    """P = 0, J = 1: exactly the gradient through one training step, if the mixed term is taken before the step."""
    problem, eta = head(zloss=loss), 1.0
    w = problem.w.clone().requires_grad_()
    # ∇L_T is affine in w, so one detached gradient per example gives the step as a differentiable function of w.
    theta = problem.start()
    base = problem.with_weights(torch.zeros_like(problem.w)).train_gradient(theta)
    each = [problem.with_weights(e).train_gradient(theta) - base for e in torch.eye(30, dtype=w.dtype)]
    stepped = theta - eta * (base + (w.view(-1, 1, 1) * torch.stack(each)).sum(0))
    (truth,) = torch.autograd.grad(problem.validation_loss(stepped), w)

    options = {"terms": 0, "alpha": eta, "lookahead": 1, "step": eta}
    at_start = implicit_hypergradient(problem, "neumann", mixed_at="start", **options).gradient
    at_end = implicit_hypergradient(problem, "neumann", mixed_at="end", **options).gradient
    assert relative(at_start, truth) < 1e-13
    assert relative(at_end, truth) > 1e-3


def test_l2rw_identity(head_arguments):
    """P = 0, J = 0 is −(λ/B) ⟨∇r_j, ∇L_V⟩, the example weight gradient of learning to reweight."""
    W, b, h_l, y_l, h_u, t, w, h_v, y_v = head_arguments()
    theta = [W.clone().requires_grad_(), b.clone().requires_grad_()]
    v = torch.autograd.grad(F.cross_entropy(F.linear(h_v, *theta), y_v), theta)
    expected = []
    for h, target in zip(h_u, t, strict=True):
        r = F.cross_entropy(F.linear(h, *theta), target)
        gradient = torch.autograd.grad(r, theta)
        expected.append(-2.0 * sum((x * y).sum() for x, y in zip(gradient, v, strict=True)) / len(w))
    g = head_hypergradient(W, b, h_l, y_l, h_u, t, w, h_v, y_v, coef=2.0, solver="neumann", terms=0, alpha=1.0)
    torch.testing.assert_close(g, torch.stack(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("solver", ["exact", "cg", "neumann"])
def test_a_small_step_along_minus_g_lowers_the_retrained_validation_loss(head, solver):
    problem = trained(head(seed=100))
    estimate = implicit_hypergradient(problem, solver)
    step = 1e-2 / float(estimate.gradient.norm())
    before = problem.validation_loss(problem.start())
    for sign in (-1.0, 1.0):
        moved = problem.with_weights(problem.w + sign * step * estimate.gradient)
        after = moved.validation_loss(stationary_point(moved))
        assert bool(after < before) == (sign < 0)


@pytest.mark.parametrize("P", [0, 1, 5])
def test_neumann_is_backpropagation_through_the_last_steps(head, P):
    """At a fixed point, α = η and P terms are the gradient through P + 1 unrolled steps of size η."""
    problem, eta = trained(head()), 0.8
    w, theta = problem.w.clone().requires_grad_(), problem.start()
    unrolled = problem.with_weights(problem.w)
    unrolled.w = w  # attached: the closed forms are ordinary torch operations, so autograd can differentiate them
    for _ in range(P + 1):
        theta = theta - eta * unrolled.train_gradient(theta)
    (truth,) = torch.autograd.grad(problem.validation_loss(theta), w)
    estimate = implicit_hypergradient(problem, "neumann", terms=P, alpha=eta).gradient
    assert relative(estimate, truth) < 1e-11


def test_look_ahead_brings_the_head_closer_to_stationarity(head):
    problem = head()
    truth = implicit_hypergradient(trained(problem), "exact").gradient
    estimates = [implicit_hypergradient(problem, "exact", lookahead=J) for J in (0, 3, 30, 1000)]
    rho = [float(e.stationarity) for e in estimates]
    assert rho == sorted(rho, reverse=True)
    assert relative(estimates[-1].gradient, truth) < 1e-6
    assert relative(estimates[-1].gradient, truth) < relative(estimates[0].gradient, truth)


def test_the_look_ahead_is_plain_gradient_descent(head):
    problem, theta = head(), head().start()
    for _ in range(3):
        theta = theta - 0.25 * problem.train_gradient(theta)
    ahead = implicit_hypergradient(problem, "cg", lookahead=3, step=0.25)
    there = implicit_hypergradient(problem.at(theta), "cg")
    torch.testing.assert_close(ahead.gradient, there.gradient)
    torch.testing.assert_close(ahead.stationarity, there.stationarity)
    assert ahead.step == 0.25
    assert there.step is None
    assert there.largest_eigenvalue is None


def test_a_given_step_is_the_neumann_step_too(head):
    problem = head()
    implied = implicit_hypergradient(problem, "neumann", lookahead=2, step=0.3, terms=4).gradient
    stated = implicit_hypergradient(problem, "neumann", lookahead=2, step=0.3, terms=4, alpha=0.3).gradient
    assert torch.equal(implied, stated)


def test_relative_damping_is_a_fraction_of_the_largest_eigenvalue(head):
    problem = head()
    damped = implicit_hypergradient(problem, "exact", relative_damping=0.1, power_iterations=50)
    fixed = implicit_hypergradient(head(damping=0.1 * float(damped.largest_eigenvalue)), "exact")
    torch.testing.assert_close(damped.gradient, fixed.gradient)
    series = implicit_hypergradient(problem, "neumann", relative_damping=0.1, power_iterations=50, terms=500)
    torch.testing.assert_close(series.gradient, fixed.gradient)


def test_the_largest_eigenvalue_takes_ten_products_and_one_more_after_the_look_ahead(head):
    problem, curvature = head(), head().curvature
    expected, vector = largest_eigenvalue(curvature(problem.start()), problem.start(), iterations=10)
    for options in ({"relative_damping": 0.1}, {"lookahead": 2}):
        estimate = implicit_hypergradient(problem, "cg", **options)
        assert torch.equal(estimate.largest_eigenvalue, expected)
        assert torch.equal(estimate.eigenvector, vector)
    torch.testing.assert_close(estimate.step, 1 / expected)
    there = problem.start()
    for _ in range(2):
        there = there - problem.train_gradient(there) / expected
    again, _ = largest_eigenvalue(curvature(there), there, start=vector, iterations=1)
    both = implicit_hypergradient(problem, "cg", lookahead=2, relative_damping=0.1)
    torch.testing.assert_close(both.largest_eigenvalue, again, rtol=1e-12, atol=0)


def test_warm_start_needs_one_product(head):
    problem = head()
    cold = implicit_hypergradient(problem, "neumann", power_iterations=200)
    warm = implicit_hypergradient(problem, "neumann", power_iterations=1, eigenvector=cold.eigenvector)
    torch.testing.assert_close(warm.largest_eigenvalue, cold.largest_eigenvalue)


def test_a_function_can_be_the_solver_and_diagnosis_can_be_left_out(head):
    problem = head()
    for solver, named in ((cg, "cg"), (exact, "exact"), (lambda matvec, b: exact(matvec, b), "exact")):
        estimate = implicit_hypergradient(problem, solver, diagnose=False)
        assert torch.equal(estimate.gradient, implicit_hypergradient(problem, named).gradient)
        assert estimate.stationarity is None


@pytest.mark.parametrize("facts", [{}, {"series": True}, {"iterative": True}], ids=str)
@pytest.mark.parametrize("by_name", [True, False])
def test_a_solver_from_outside_gets_the_options_that_its_facts_promise(head, facts, by_name):
    """The estimate is that of the package's own solver of the same kind, damping and look-ahead included."""
    told = []
    with SOLVERS.isolated():

        @register_solver("mine", **facts)
        def mine(matvec, b, **options):
            told.append(options)
            return (neumann if facts.get("series") else cg if facts.get("iterative") else exact)(matvec, b, **options)

        own = "neumann" if "series" in facts else "cg" if "iterative" in facts else "exact"
        settings = {"lookahead": 2, "relative_damping": 0.1}
        options = solver_options(HypergradientRequest(solver="mine", P=4))
        estimate = implicit_hypergradient(head(), "mine" if by_name else mine, **settings, **options)
        expected = implicit_hypergradient(head(), own, **settings, **options)
    assert torch.equal(estimate.gradient, expected.gradient)
    names = {"series": {"terms", "alpha", "check"}, "iterative": {"iterations", "tolerance"}}
    assert [set(options) for options in told] == [names.get(next(iter(facts), ""), set())]
    if "series" in facts:
        torch.testing.assert_close(told[0]["alpha"], 1 / (1.1 * estimate.largest_eigenvalue))


def test_a_series_from_outside_may_ask_for_products_without_terms(head):
    """With P = 0 and a known α the curvature is prepared only if the series asks for it."""
    with SOLVERS.isolated():

        @register_solver("one more", series=True)
        def one_more(matvec, b, *, terms, alpha):
            return neumann(matvec, b, terms=terms + 1, alpha=alpha, check=False)

        problem = head()
        for terms in (0, 1):
            ours = implicit_hypergradient(problem, "one more", terms=terms, step=0.3).gradient
            theirs = implicit_hypergradient(problem, "neumann", terms=terms + 1, step=0.3).gradient
            assert torch.equal(ours, theirs)


def test_the_global_generator_is_left_alone(head):
    before = torch.get_rng_state()
    implicit_hypergradient(head(), "neumann", lookahead=3)
    assert torch.equal(before, torch.get_rng_state())
