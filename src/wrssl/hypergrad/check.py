"""Is a hypergradient right? The truth by finite differences of re-training, any estimate beside it, and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from wrssl.errors import DivergenceError, OptionError
from wrssl.hypergrad.head import HeadProblem
from wrssl.hypergrad.implicit import Estimate, implicit_hypergradient
from wrssl.hypergrad.problem import BilevelProblem
from wrssl.hypergrad.solvers import dense

# The truth: train to the end, move one weight, train to the end again.


@torch.no_grad()
def stationary_point(
    problem: BilevelProblem, *, tolerance: float = 1e-12, iterations: int = 200, theta: Tensor | None = None
) -> Tensor:
    """θ* with ``‖∇L_T(θ*, w)‖ ≤ tolerance · max(1, ‖θ*‖)``, by Newton's method with step halving.

    The direction is ``−|H|⁻¹ ∇L_T``: eigenvalues enter by their magnitude, so that it points downhill where the loss
    is not convex, and near a minimum it is Newton's. H is built densely: for heads and very small networks, with a
    ridge (or another reason for a unique minimum), in float64.

    Raises:
        DivergenceError: if no step makes progress or the iterations run out.
    """
    theta = problem.start() if theta is None else theta
    gradient = problem.train_gradient(theta)
    for _ in range(iterations):
        if gradient.norm() <= tolerance * theta.norm().clamp_min(1.0):
            return theta
        values, vectors = torch.linalg.eigh(dense(problem.curvature(theta), theta))
        size = values.abs()
        size = size.clamp_min(float(size.amax()) * theta.numel() * torch.finfo(theta.dtype).eps)
        move = (vectors @ ((vectors.T @ gradient.reshape(-1)) / size)).reshape(theta.shape)
        theta, gradient = _halved(problem, theta, gradient, move)
    raise DivergenceError(
        f"Training to stationarity did not end within {iterations} Newton steps (gradient "
        f"{float(gradient.norm()):.1e}): use a larger ridge, float64, or a looser tolerance."
    )


def _halved(problem: BilevelProblem, theta: Tensor, gradient: Tensor, move: Tensor) -> tuple[Tensor, Tensor]:
    """The longest of the steps 1, ½, ¼, … that lowers the loss, or (next to the minimum) the gradient."""
    loss, slope = problem.train_loss(theta), (gradient * move).sum()
    for halving in range(40):
        scale = 0.5**halving
        moved = theta - scale * move
        new_gradient = problem.train_gradient(moved)
        lower = problem.train_loss(moved) <= loss - 1e-4 * scale * slope
        # Where the loss no longer resolves the difference, its gradient still does.
        if bool(lower) or (halving == 0 and bool(new_gradient.norm() < 0.5 * gradient.norm())):
            return moved, new_gradient
    raise DivergenceError(
        f"Training to stationarity is stuck at a gradient of {float(gradient.norm()):.1e}: "
        "use a larger ridge, float64, or a looser tolerance."
    )


@torch.no_grad()
def retrained_gradient(
    problem: BilevelProblem, indices: Sequence[int], *, epsilon: float = 1e-4, theta: Tensor | None = None
) -> Tensor:
    """``[L_V(θ*(w + ε e_j)) − L_V(θ*(w − ε e_j))] / 2ε`` for each j of ``indices``: no derivative of any kind.

    Args:
        problem: the problem; its start (or ``theta``, such as θ*(w)) is where each training begins.
        indices: which weights to move.
        epsilon: ε.
        theta: where to begin instead.
    """

    def loss(j: int, change: float) -> Tensor:
        moved = problem.with_weights(_with_one_moved(problem.w, j, change))
        return moved.validation_loss(stationary_point(moved, theta=theta))

    return _central_differences(loss, indices, epsilon)


def _with_one_moved(w: Tensor, j: int, change: float) -> Tensor:
    w = w.clone()
    w[j] += change
    return w


def _central_differences(loss: Callable[[int, float], Tensor], indices: Sequence[int], epsilon: float) -> Tensor:
    """``[loss(j, ε) − loss(j, −ε)] / 2ε`` for each j."""
    return torch.stack([(loss(j, epsilon) - loss(j, -epsilon)) / (2.0 * epsilon) for j in indices])


# An estimate beside the truth.


@dataclass(frozen=True, eq=False)
class CheckResult:
    """An estimate beside the truth.

    Attributes:
        cosine: between the two; 1 means the same direction.
        relative_error: ``‖estimated − finite_difference‖ / ‖finite_difference‖``.
        estimated: dL_V/dw_j of the estimator, for the chosen examples.
        finite_difference: the same by moving each weight.
        stationarity: ρ where the estimate was taken, see ``Estimate``; None where it plays no part.
        largest_eigenvalue: λ_max of the curvature, where the estimator measured it.
        tolerance: the relative error up to which the estimate counts as right.
    """

    cosine: float
    relative_error: float
    estimated: Tensor
    finite_difference: Tensor
    stationarity: float | None = None
    largest_eigenvalue: float | None = None
    tolerance: float = 1e-4

    @property
    def passed(self) -> bool:
        """Whether the estimate equals the finite differences up to the tolerance."""
        return self.relative_error <= self.tolerance

    @property
    def verdict(self) -> str:
        """One sentence for a person."""
        if not bool(self.estimated.any() | self.finite_difference.any()):
            return "Both are zero: these weights have no effect here (no confident row?), so nothing was tested."
        if self.passed:
            return "The hypergradient is right: it equals the finite differences."
        if self.cosine > 0.9:
            return "The hypergradient points the right way, but its size is off: good for normalized steps."
        if self.cosine > 0.0:
            hint = "use more solver terms or CG"
            if self.stationarity is not None and self.stationarity > 1e-3:
                hint = "use more look-ahead steps, then more solver terms or CG"
            return f"The hypergradient is only roughly right: {hint}."
        return "The hypergradient points the wrong way: do not train weights with it."

    def __str__(self) -> str:
        lines = [
            self.verdict,
            f"cosine {self.cosine:.6f}, relative error {self.relative_error:.2e}, {len(self.estimated)} examples",
        ]
        if self.stationarity is not None:
            lines.append(f"stationarity |grad L_T| / |grad L_V| = {self.stationarity:.2e} (0 is ideal)")
        if self.largest_eigenvalue is not None:
            lines.append(f"largest curvature {self.largest_eigenvalue:.3g}")
        return "\n".join(lines)


def compare(estimate: Tensor | Estimate, finite_difference: Tensor, *, tolerance: float = 1e-4) -> CheckResult:
    """Compare an estimate with finite differences of the same examples."""
    numbers: dict[str, float | None] = {}
    if isinstance(estimate, Estimate):
        for name in ("stationarity", "largest_eigenvalue"):
            value = getattr(estimate, name)
            numbers[name] = None if value is None else float(value)
        estimate = estimate.gradient
    a, b = estimate.detach().double(), finite_difference.detach().double()
    tiny = torch.finfo(torch.float64).tiny
    cosine = float((a * b).sum() / (a.norm() * b.norm()).clamp_min(tiny))
    error = float((a - b).norm() / b.norm().clamp_min(tiny))
    return CheckResult(cosine, error, a, b, tolerance=tolerance, **numbers)


# The checks: an estimate and its truth, and the comparison of the two.


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
        problem: the head problem; its ridge must be positive, so that the trained head is unique.
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
    chosen = _evenly_spaced(problem.n_u) if indices is None else list(indices)
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
    chosen = _evenly_spaced(problem.w.numel()) if indices is None else list(indices)
    theta = problem.start()

    def loss(j: int, change: float) -> Tensor:
        moved = problem.with_weights(_with_one_moved(problem.w, j, change))
        return problem.validation_loss(theta - eta * moved.train_gradient(theta))

    with torch.no_grad():
        truth = _central_differences(loss, chosen, epsilon)
    estimate = implicit_hypergradient(
        problem, "neumann", terms=0, lookahead=1, step=eta, mixed_at="start", diagnose=False
    )
    return compare(replace(estimate, gradient=estimate.gradient[chosen]), truth, tolerance=tolerance)


def _evenly_spaced(size: int) -> list[int]:
    """Up to eight of ``size`` examples, evenly spread over the batch."""
    return sorted({round(i * (size - 1) / 7) for i in range(8)}) if size > 0 else []
