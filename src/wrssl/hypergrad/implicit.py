"""The hypergradient dL_V/dw by implicit differentiation: one algorithm for the head and for the whole network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wrssl.errors import OptionError
from wrssl.hypergrad.problem import BilevelProblem, Matvec
from wrssl.hypergrad.solvers import find_solver, largest_eigenvalue, safe_step


@dataclass(frozen=True, eq=False)
class Estimate:
    """The hypergradient and what was measured on the way; tensors on the device, nothing waits for it.

    Attributes:
        gradient: dL_V/dw_j, shape ``(B_u,)``.
        largest_eigenvalue: λ_max where it was last measured; None where no step depended on it.
        eigenvector: its eigenvector, to warm-start the next call.
        step: the look-ahead step that was used; None where there was none.
        stationarity: ``ρ = ‖∇L_T(θ^J)‖ / ‖∇L_V(θ^J)‖``. The implicit function theorem assumes 0; above 1 the estimate
            is a direction at best. None with ``diagnose=False``.
    """

    gradient: Tensor
    largest_eigenvalue: Tensor | None
    eigenvector: Tensor | None
    step: float | Tensor | None
    stationarity: Tensor | None


@torch.no_grad()
def implicit_hypergradient(
    problem: BilevelProblem,
    solver: str | Callable[..., Tensor] = "cg",
    *,
    lookahead: int = 0,
    step: float | Tensor | None = None,
    mixed_at: str = "end",
    relative_damping: float = 0.0,
    power_iterations: int = 10,
    eigenvector: Tensor | None = None,
    diagnose: bool = True,
    **options: Any,
) -> Estimate:
    """Algorithm 2 of the paper: look ahead, solve, differentiate each r_j.

    At a stationary θ, where ∇_θ L_T(θ, w) = 0, the implicit function theorem gives
    ``dL_V/dw_j = −⟨∂∇_θ L_T/∂w_j, q⟩ = −(λ/B_u) ⟨∇r_j, q⟩`` with ``H q = ∇_θ L_V``:

    1. J steps ``θ ← θ − η ∇L_T(θ, w)`` on a copy bring θ closer to stationarity; the model stays as it is;
    2. v = ∇L_V(θ^J);
    3. q = solve(H(θ^J) + δI, v);
    4. dL_V/dw_j = −(λ/B_u) d/dt r_j(θ + t q), at θ = θ^J or θ⁰.

    Args:
        problem: the bilevel problem.
        solver: a registered name (``"neumann"``, ``"cg"``, ``"exact"``), or a function ``solve(matvec, b)``.
        lookahead: J.
        step: η; None takes 1/λ_max. A series without an α of its own takes η too, as the paper does.
        mixed_at: ``"end"`` takes step 4 at θ^J, as the theorem says. ``"start"`` takes it at θ⁰; with J = 1 and
            q = ηv this is exactly the gradient through one training step (Lemma 1).
        relative_damping: δ as a fraction of λ_max, on top of the problem's own damping; 0.01 to 1 where a batch has
            fewer rows than the head has inputs, so that H is singular.
        power_iterations: products for λ_max, where it is needed.
        eigenvector: warm start for them, from the last call's ``Estimate``.
        diagnose: measure the stationarity, which costs one more training gradient.
        options: passed to the solver; ``solver_options`` makes them from a request.
    """
    if mixed_at not in ("start", "end"):
        raise OptionError(f'mixed_at="{mixed_at}" does not exist: use "start" or "end".')
    solve, facts = find_solver(solver)
    series = bool(facts.get("series"))
    needs_alpha = series and options.get("alpha") is None
    eigenvalue, eta = None, step

    start = theta = problem.start()
    if lookahead > 0:
        if eta is None:
            eigenvalue, eigenvector = largest_eigenvalue(
                problem.curvature(start), start, start=eigenvector, iterations=power_iterations
            )
            eta = safe_step(eigenvalue)
        for _ in range(lookahead):
            theta = theta - eta * problem.train_gradient(theta)

    # A series with P = 0, such as αv, needs no product with a known α: then the curvature is not prepared either.
    products = not series or options.get("terms") != 0 or relative_damping > 0 or step is None
    curvature, alpha = problem.curvature(theta) if products else _unprepared(problem, theta), step
    if relative_damping > 0 or (needs_alpha and step is None):
        # λ_max is measured where it is used: θ^J may be more curved than θ⁰. One product suffices from there.
        more = power_iterations if eigenvalue is None else 1
        eigenvalue, eigenvector = largest_eigenvalue(curvature, theta, start=eigenvector, iterations=more)
        curvature = _shifted(curvature, relative_damping * eigenvalue)
        alpha = safe_step((1.0 + relative_damping) * eigenvalue) if step is None else step
    if needs_alpha:
        options["alpha"] = alpha
    v = problem.validation_gradient(theta)
    q = solve(curvature, v, **options)
    gradient = problem.mixed(theta if mixed_at == "end" else start, q)

    stationarity = None
    if diagnose:
        tiny = torch.finfo(v.dtype).tiny
        stationarity = problem.train_gradient(theta).norm() / v.norm().clamp_min(tiny)
    return Estimate(gradient, eigenvalue, eigenvector, eta, stationarity)


def _unprepared(problem: BilevelProblem, theta: Tensor) -> Matvec:
    """The curvature at θ, prepared anew for each product: for a solver that is expected to ask for none."""
    return lambda u: problem.curvature(theta)(u)


def _shifted(matvec: Matvec, shift: Tensor) -> Matvec:
    """``u ↦ Hu + shift · u``."""
    return lambda u: matvec(u) + shift * u


def segment_sum(g: Tensor, cluster: Tensor, size: int) -> Tensor:
    """From a gradient per example to one per cluster: ``g_k = Σ_{j in cluster k} g_j``.

    This is the chain rule for ``w_j = w_{cluster(j)}``, exactly.

    Args:
        g: a value per example, ``(B,)``.
        cluster: the cluster of each example, ``(B,)``, from 0 to size − 1.
        size: K.

    Returns:
        Shape ``(K,)``; 0 where no example of the cluster is in the batch.
    """
    return g.new_zeros(size).index_add_(0, cluster, g)


def segment_mean(g: Tensor, cluster: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The mean over each cluster's examples, so that the size of a step does not depend on the number of clusters.

    Returns:
        The means, ``(K,)``, 0 where no example of the cluster is in the batch; and the numbers of examples, ``(K,)``.
    """
    counts = segment_sum(g.new_ones(g.shape), cluster, size)
    return segment_sum(g, cluster, size) / counts.clamp_min(1.0), counts
