"""Conjugate gradients: the best use of a given number of products."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.hypergrad.problem import Matvec


def cg(matvec: Matvec, b: Tensor, *, iterations: int | None = None, tolerance: float = 1e-10) -> Tensor:
    """``H x = b`` for a symmetric positive semi-definite H, exact after as many products as H has eigenvalues.

    Invariants: the residual ``r = b − Hx`` is orthogonal to all earlier directions, and the directions are
    H-orthogonal, so x minimises ``½xᵀHx − bᵀx`` over the space that they span. A null space of H does no harm as
    long as b has no part in it.

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
        # One look at the device per product: stopping early saves more than waiting costs.
        if not bool((php > 0) & (rr > enough)):
            break
        alpha = rr / php
        x = x + alpha * p
        r = r - alpha * hp
        rr_new = (r * r).sum()
        p = r + (rr_new / rr) * p
        rr = rr_new
    return x
