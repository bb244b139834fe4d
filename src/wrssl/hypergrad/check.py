"""Is a hypergradient right? Any estimator against finite differences, on any problem, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from wrssl.api import OptionError
from wrssl.hypergrad.comparison import CheckResult, compare
from wrssl.hypergrad.head import HeadProblem
from wrssl.hypergrad.implicit import implicit_hypergradient
from wrssl.hypergrad.problem import BilevelProblem
from wrssl.hypergrad.retrain import retrained_gradient, stationary_point


def check_head(
    problem: HeadProblem,
    solver: str | Callable[..., Tensor] = "exact",
    *,
    indices: Sequence[int] | None = None,
    at: str = "solution",
    epsilon: float = 1e-4,
    tolerance: float = 1e-4,
    **options: Any,
) -> CheckResult:
    """The estimate of dL_V/dw against finite differences of the re-trained head, in float64.

    Args:
        problem: the head problem; its ridge must be positive, so that there is one trained head to speak of.
        solver: the solver of the estimator under test.
        indices: which weights to move; None takes up to eight, spread evenly.
        at: where the estimator starts: ``"solution"`` (the trained head, where an exact solver must be right) or
            ``"start"`` (the head as it is, as in training).
        epsilon: how far each weight is moved.
        tolerance: see ``CheckResult``.
        options: of ``implicit_hypergradient`` and of the solver, such as ``lookahead=3, terms=5``.
    """
    if problem.ridge <= 0:
        raise OptionError("The check re-trains the head, which has a unique solution with ridge > 0 only: set ridge.")
    if at not in ("solution", "start"):
        raise OptionError(f'at="{at}" does not exist: use "solution" or "start".')
    problem = problem.double()
    trained = problem.with_exact_hessian()  # the truth does not depend on the estimator's curvature and damping
    solution = stationary_point(trained)
    chosen = _spread(problem.n_u) if indices is None else list(indices)
    truth = retrained_gradient(trained, chosen, epsilon=epsilon, theta=solution)
    estimate = implicit_hypergradient(problem.at(solution) if at == "solution" else problem, solver, **options)
    return compare(replace(estimate, gradient=estimate.gradient[chosen]), truth, tolerance=tolerance)


def check_one_step(
    problem: BilevelProblem,
    eta: float,
    *,
    indices: Sequence[int] | None = None,
    epsilon: float = 1e-3,
    tolerance: float = 1e-4,
) -> CheckResult:
    """Lemma 1: P = 0, J = 1, mixed term at θ⁰ equals ``d/dw L_V(θ − η ∇L_T(θ, w))``, for any network.

    Nothing is re-trained, so this works at any size; in float32 the finite differences carry about three digits.
    """
    chosen = _spread(problem.w.numel()) if indices is None else list(indices)
    theta = problem.start()

    def loss(j: int, change: float) -> Tensor:
        w = problem.w.clone()
        w[j] += change
        return problem.validation_loss(theta - eta * problem.with_weights(w).train_gradient(theta))

    with torch.no_grad():
        truth = torch.stack([(loss(j, epsilon) - loss(j, -epsilon)) / (2.0 * epsilon) for j in chosen])
    estimate = implicit_hypergradient(
        problem, "neumann", terms=0, lookahead=1, step=eta, mixed_at="start", diagnose=False
    )
    return compare(replace(estimate, gradient=estimate.gradient[chosen]), truth, tolerance=tolerance)


def _spread(size: int) -> list[int]:
    """Up to eight examples, evenly spread over the batch."""
    return sorted({round(i * (size - 1) / 7) for i in range(8)}) if size > 0 else []
