"""The truth that an estimate is measured against: train to the end, move one weight, train to the end again."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from wrssl.api import DivergenceError
from wrssl.hypergrad.problem import BilevelProblem
from wrssl.hypergrad.solvers.exact import dense


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
        w = problem.w.clone()
        w[j] += change
        moved = problem.with_weights(w)
        return moved.validation_loss(stationary_point(moved, theta=theta))

    return torch.stack([(loss(j, epsilon) - loss(j, -epsilon)) / (2.0 * epsilon) for j in indices])
