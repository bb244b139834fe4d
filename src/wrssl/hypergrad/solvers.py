"""Solvers of ``H x = b`` from products with H alone, and the largest eigenvalue of H, which gives their step.

A solver is a function ``solve(matvec, b) -> x`` for the product ``matvec`` with a symmetric matrix H; b may have any
shape, ``matvec`` keeps it, and x has it too. One from outside is registered as those below are. The facts beside its
name say which options it takes, and without facts it is called as ``solve(matvec, b)``::

    @register_solver("mine")                    # solve(matvec, b)
    @register_solver("mine", series=True)       # solve(matvec, b, terms=P, alpha=α, check=…): a series with a step α
    @register_solver("mine", iterative=True)    # solve(matvec, b, iterations=P, tolerance=…)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wrssl.errors import DivergenceError
from wrssl.hypergrad.problem import Matvec
from wrssl.registry import SOLVERS, register_solver


def find_solver(solver: str | Callable[..., Tensor]) -> tuple[Callable[..., Tensor], dict[str, Any]]:
    """A solver, by its name or as the function itself, and its registered facts; an unregistered function has none."""
    if isinstance(solver, str):
        return SOLVERS.get(solver), SOLVERS.facts(solver)
    names = (name for name in SOLVERS.names() if SOLVERS.get(name) is solver)
    return solver, next((SOLVERS.facts(name) for name in names), {})


@register_solver("neumann", series=True)
def neumann(
    matvec: Matvec, b: Tensor, *, terms: int = 5, alpha: float | Tensor | None = None, check: bool = True
) -> Tensor:
    """The truncated Neumann series, the solver of the paper: ``x = α Σ_{p=0}^{P} (I − αH)^p b``.

    It tends to ``H⁻¹ b`` as P grows, if 0 < α < 2/λ_max. Invariant: the residual is ``b − Hx = (I − αH)^(P+1) b``.
    Modes with an eigenvalue below about 1/(αP) are not inverted: a small P acts like early stopping.

    Args:
        matvec: the product with a symmetric H.
        b: the right-hand side, any shape.
        terms: P, the number of products; P = 0 gives ``αb``.
        alpha: α; None takes 1/λ_max, found by power iteration.
        check: refuse a diverging series. False returns it as it is, and never waits for the device.

    Raises:
        DivergenceError: if the terms grow; the message names an α that converges, or says that none does.
    """
    if alpha is None:
        alpha = safe_step(largest_eigenvalue(matvec, b, iterations=20)[0])
    # H⁻¹ = α [ I + (I − αH) + (I − αH)² + (I − αH)³ + … ]
    previous = term = total = b
    for _ in range(terms):
        previous, term = term, term - alpha * matvec(term)
        total = total + term
    if check and terms > 0:
        _refuse_growth(matvec, previous, term, float(alpha))
    return alpha * total


def _refuse_growth(matvec: Matvec, previous: Tensor, term: Tensor, alpha: float) -> None:
    """Compare the last two terms only: for a symmetric H the norms ‖(I − αH)^p b‖ are log-convex in p.

    Once a term is longer than the one before, all later ones grow, at an increasing rate.
    """
    before, after = float(previous.norm()), float(term.norm())
    slack = 1.0 + math.sqrt(torch.finfo(term.dtype).eps)  # the null space keeps ‖term‖ constant up to rounding
    if math.isfinite(after) and after <= slack * before:
        return
    size, x = largest_eigenvalue(matvec, term, iterations=100)
    largest = float(size)
    if alpha * largest >= 2.0 and float((x * matvec(x)).sum()) > 0.0:
        raise DivergenceError(
            f"The Neumann series diverges with alpha = {alpha:.3g}, because the largest eigenvalue is "
            f"{largest:.3g}: use alpha below {2.0 / largest:.3g}, for example alpha = {1.0 / largest:.3g}."
        )
    raise DivergenceError(
        "The Neumann series diverges with every alpha, because the curvature has a negative eigenvalue (or is not "
        f'finite): use curvature="gauss-newton", or a damping of up to {largest:.3g}.'
    )


@register_solver("cg", iterative=True)
def cg(matvec: Matvec, b: Tensor, *, iterations: int | None = None, tolerance: float = 1e-10) -> Tensor:
    """Conjugate gradients, the best use of a given number of products.

    For a symmetric positive semi-definite H; exact after as many products as H has distinct eigenvalues.

    Invariants: the residual ``r = b − Hx`` is orthogonal to all earlier directions, and the directions are
    H-orthogonal, so x minimizes ``½xᵀHx − bᵀx`` over the space that they span. A null space of H does no harm as
    long as b has no component in it.

    Args:
        matvec: the product with H.
        b: the right-hand side, any shape.
        iterations: the most products to use; None allows one per unknown.
        tolerance: stop when ``‖b − Hx‖ ≤ tolerance · ‖b‖``.

    Returns:
        x; the best so far if a direction without positive curvature turns up (H is not positive definite there).
    """
    x = torch.zeros_like(b)
    r = p = b
    rr = (r * r).sum()
    enough = tolerance**2 * rr
    for _ in range(b.numel() if iterations is None else iterations):
        hp = matvec(p)
        php = (p * hp).sum()
        # This waits for the device once per product: stopping early saves more than waiting costs.
        if not bool((php > 0) & (rr > enough)):
            break
        alpha = rr / php
        x = x + alpha * p
        r = r - alpha * hp
        rr_new = (r * r).sum()
        p = r + (rr_new / rr) * p
        rr = rr_new
    return x


@register_solver("exact")
def exact(matvec: Matvec, b: Tensor) -> Tensor:
    """The dense solve ``x = H⁺ b`` with the pseudo-inverse ``H⁺ = Σ_{|λ_i| > cutoff} u_i u_iᵀ / λ_i``.

    The reference for the other solvers, and quick enough for a head with up to about 1,500 entries.

    Invariant: ``b − Hx`` is in the null space of H, and x is orthogonal to it. Softmax always has such a null space
    (W + 1cᵀ gives the same probabilities as W), in which a validation gradient has no component. H may be indefinite.

    Args:
        matvec: the product with a symmetric H.
        b: the right-hand side, any shape.
    """
    values, vectors = torch.linalg.eigh(dense(matvec, b))
    cutoff = values.abs().amax() * b.numel() * torch.finfo(b.dtype).eps
    kept = values.abs() > cutoff
    inverse = torch.where(kept, 1.0 / torch.where(kept, values, 1.0), 0.0)
    x: Tensor = vectors @ (inverse * (vectors.T @ b.reshape(-1)))
    return x.reshape(b.shape)


def dense(matvec: Matvec, like: Tensor) -> Tensor:
    """The n × n matrix of ``matvec``, n = ``like.numel()``, symmetrized against rounding.

    ``matvec`` is applied to the rows of the identity by ``torch.func.vmap``, or one after the other where it contains
    operations that ``vmap`` does not support (dual numbers, custom functions).
    """
    n = like.numel()
    basis = torch.eye(n, dtype=like.dtype, device=like.device).reshape(n, *like.shape)
    rows: Tensor
    try:
        # 256 products at a time bound the memory; the result does not depend on it.
        rows = torch.func.vmap(matvec, chunk_size=min(n, 256))(basis)
    except RuntimeError:  # an error of the product itself is raised again below
        rows = torch.stack([matvec(row) for row in basis])
    matrix = rows.reshape(n, n)
    return 0.5 * (matrix + matrix.T)


def largest_eigenvalue(
    matvec: Matvec, like: Tensor, *, start: Tensor | None = None, iterations: int = 10
) -> tuple[Tensor, Tensor]:
    """|λ|_max of a symmetric ``matvec`` and its eigenvector, by power iteration.

    Iterates ``x ← Hx / ‖Hx‖`` and returns ``‖Hx‖`` of the last unit vector x. For a symmetric H this is a lower
    bound of |λ|_max, and a tighter one than the Rayleigh quotient xᵀHx.

    Args:
        matvec: the product with a symmetric matrix.
        like: a tensor with the shape, type and device of the vectors; its values do not matter.
        start: the vector to start from, for example the one of the last call (a warm start needs 1-3 iterations).
            Without it a fixed pseudo-random vector: the result is reproducible and no global generator is touched.
        iterations: number of products, at least 1.

    Returns:
        The eigenvalue, a scalar tensor (nothing waits for the device), and the eigenvector, shaped like ``like``.
    """
    if start is None:
        own = torch.Generator().manual_seed(0)
        start = torch.randn(like.shape, generator=own, dtype=torch.float64).to(like)
    tiny = torch.finfo(like.dtype).tiny
    x = start / start.norm().clamp_min(tiny)
    size = x.new_zeros(())
    for _ in range(max(1, iterations)):
        y = matvec(x)
        size = y.norm()
        x = y / size.clamp_min(tiny)
    return size, x


def safe_step(eigenvalue: Tensor) -> Tensor:
    """1/λ_max, a step at which look-ahead and Neumann series are stable; finite where the curvature vanishes."""
    return 1.0 / eigenvalue.clamp_min(torch.finfo(eigenvalue.dtype).eps)
