"""The dense solve: the reference for the other solvers, and quick enough for a head with up to about 1,500 entries."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.hypergrad.problem import Matvec


def dense(matvec: Matvec, like: Tensor) -> Tensor:
    """The n × n matrix of ``matvec``, n = ``like.numel()``, symmetrised against rounding.

    ``matvec`` is applied to the rows of the identity by ``torch.func.vmap``, or one after the other where it contains
    what that cannot look into (dual numbers, custom functions).
    """
    n = like.numel()
    basis = torch.eye(n, dtype=like.dtype, device=like.device).reshape(n, *like.shape)
    rows: Tensor
    try:
        # 256 products at a time bound the memory; the result does not depend on it.
        rows = torch.func.vmap(matvec, chunk_size=min(n, 256))(basis)
    except RuntimeError:  # an error of the product itself comes again
        rows = torch.stack([matvec(row) for row in basis])
    matrix = rows.reshape(n, n)
    return 0.5 * (matrix + matrix.T)


def exact(matvec: Matvec, b: Tensor) -> Tensor:
    """``x = H⁺ b`` with the pseudo-inverse ``H⁺ = Σ_{|λ_i| > cutoff} u_i u_iᵀ / λ_i`` of a symmetric H.

    The pseudo-inverse leaves the null space alone, which softmax always has (W + 1cᵀ gives the same probabilities
    as W) and in which a validation gradient has no part. H may be indefinite.

    Args:
        matvec: the product with H.
        b: the right-hand side, any shape.
    """
    values, vectors = torch.linalg.eigh(dense(matvec, b))
    cutoff = values.abs().amax() * b.numel() * torch.finfo(b.dtype).eps
    kept = values.abs() > cutoff
    inverse = torch.where(kept, 1.0 / torch.where(kept, values, 1.0), 0.0)
    x: Tensor = vectors @ (inverse * (vectors.T @ b.reshape(-1)))
    return x.reshape(b.shape)
