"""The largest eigenvalue by power iteration; 1/λ_max is the step that look-ahead and Neumann series can trust."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.hypergrad.problem import Matvec


def largest_eigenvalue(
    matvec: Matvec, like: Tensor, *, start: Tensor | None = None, iterations: int = 10
) -> tuple[Tensor, Tensor]:
    """|λ|_max of a symmetric ``matvec``, and its eigenvector.

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
    """1/λ_max, finite where the curvature vanishes."""
    return 1.0 / eigenvalue.clamp_min(torch.finfo(eigenvalue.dtype).eps)
