"""The entropy of the prediction: entropy minimisation."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.hypergrad.problem import Matvec
from wrssl.hypergrad.zspace.base import LogitLoss, softmax_jacobian, softmax_second


class Entropy(LogitLoss):
    """``r = −Σ_c p_c log p_c``, no target: gradient ``−S log p``."""

    row_targets = False

    def value(self, z: Tensor, t: Tensor) -> Tensor:
        """``−Σ_c p_c log p_c``."""
        log_p = z.log_softmax(-1)
        return -(log_p.exp() * log_p).sum(-1)

    def gradient(self, z: Tensor, t: Tensor) -> Tensor:
        """``−S log p``."""
        log_p = z.log_softmax(-1)
        return -softmax_jacobian(log_p.exp(), log_p)

    def hessian(self, z: Tensor, t: Tensor) -> Matvec:
        """``−dp − T(dp, log p)``."""
        log_p = z.log_softmax(-1)
        p = log_p.exp()

        def product(u: Tensor) -> Tensor:
            dp = softmax_jacobian(p, u)
            return -dp - softmax_second(p, dp, log_p)

        return product

    def gauss_newton(self, z: Tensor, t: Tensor) -> Matvec:
        """0: entropy is concave in p, so its Gauss-Newton matrix is negative and is dropped."""
        return torch.zeros_like
