"""Derivatives of any per-example loss, for methods without a closed form."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from wrssl.hypergrad.forward import directional
from wrssl.hypergrad.problem import Matvec
from wrssl.hypergrad.zspace.base import LogitLoss


class Automatic(LogitLoss):
    """``r = loss(z, t)`` with derivatives by ``torch.func``.

    Row j of the result may depend on row j of z only. Then the gradient of Σ_j r_j holds every dr_j/dz_j, and the
    Hessian of the sum is block-diagonal with one C × C block per example.

    Args:
        loss: maps logits ``(B, C)`` and targets to losses ``(B,)``; made of differentiable torch operations.
    """

    row_targets = False

    def __init__(self, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.loss = loss

    def value(self, z: Tensor, t: Tensor) -> Tensor:
        """``loss(z, t)``."""
        return self.loss(z, t)

    def gradient(self, z: Tensor, t: Tensor) -> Tensor:
        """``d Σ_j r_j / dz``."""
        gradient: Tensor = torch.func.grad(lambda x: self.loss(x, t).sum())(z)
        return gradient

    def hessian(self, z: Tensor, t: Tensor) -> Matvec:
        """``u ↦ d/ds gradient(z + s u)|_{s=0}``, forward over reverse."""
        return lambda u: directional(lambda x: self.gradient(x, t), z, u)

    def gauss_newton(self, z: Tensor, t: Tensor) -> Matvec:
        """The positive semi-definite matrix nearest to each block: its negative eigenvalues become 0.

        A loss given as a program has no Gauss-Newton matrix of its own, because it does not say which part of it is
        the model's output. This projection is the Hessian where that is positive semi-definite already. The closed
        forms of the other files choose differently (for example ``S`` for KL(p‖t)), and cheaper.
        """
        product = self.hessian(z, t)
        basis = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
        columns: Tensor = torch.func.vmap(lambda e: product(e.expand_as(z)))(basis)  # (C, B, C)
        blocks = columns.transpose(0, 1)
        values, vectors = torch.linalg.eigh(0.5 * (blocks + blocks.mT))
        psd = (vectors * values.clamp_min(0.0).unsqueeze(-2)) @ vectors.mT
        return lambda u: (psd @ u.unsqueeze(-1)).squeeze(-1)


def automatic(loss: Callable[[Tensor, Tensor], Tensor]) -> LogitLoss:
    """A ``LogitLoss`` from any per-example function ``loss(z, t) -> (B,)``."""
    return Automatic(loss)
