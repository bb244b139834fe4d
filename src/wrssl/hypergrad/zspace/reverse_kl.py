"""KL(p‖t), student first: VAT in the direction of Oliver et al."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.hypergrad.problem import Matvec
from wrssl.hypergrad.zspace.base import LogitLoss, softmax_jacobian, softmax_second


class ReverseKL(LogitLoss):
    """``r = KL(p‖t) = Σ_c p_c a_c`` with ``a = log p − log t``: gradient ``S a``.

    log t is taken no lower than the logarithm of the type's smallest normal number, so that t = 0 stays finite.
    """

    def value(self, z: Tensor, t: Tensor) -> Tensor:
        """``Σ_c p_c (log p_c − log t_c)``."""
        log_p = z.log_softmax(-1)
        return (log_p.exp() * (log_p - _log(t))).sum(-1)

    def gradient(self, z: Tensor, t: Tensor) -> Tensor:
        """``S a``."""
        log_p = z.log_softmax(-1)
        return softmax_jacobian(log_p.exp(), log_p - _log(t))

    def hessian(self, z: Tensor, t: Tensor) -> Matvec:
        """``dp + T(dp, a)``."""
        log_p = z.log_softmax(-1)
        p, a = log_p.exp(), log_p - _log(t)

        def product(u: Tensor) -> Tensor:
            dp = softmax_jacobian(p, u)
            return dp + softmax_second(p, dp, a)

        return product

    def gauss_newton(self, z: Tensor, t: Tensor) -> Matvec:
        """``dp``: the Hessian where p = t."""
        p = z.softmax(-1)
        return lambda u: softmax_jacobian(p, u)

    def softmax_multiple(self, t: Tensor) -> Tensor:
        """1."""
        return torch.ones_like(t[:, :1])


def _log(t: Tensor) -> Tensor:
    return t.clamp_min(torch.finfo(t.dtype).tiny).log()
