"""Squared error between probabilities: Π-Model, Mean Teacher, MixMatch."""

from __future__ import annotations

from torch import Tensor

from wrssl.hypergrad.problem import Matvec
from wrssl.hypergrad.zspace.base import LogitLoss, softmax_jacobian, softmax_second


class SquaredError(LogitLoss):
    """``r = (1/C) ‖p − t‖²``: gradient ``(2/C) S(p − t)``."""

    def value(self, z: Tensor, t: Tensor) -> Tensor:
        """``(1/C) Σ_c (p_c − t_c)²``."""
        return (z.softmax(-1) - t).square().mean(-1)

    def gradient(self, z: Tensor, t: Tensor) -> Tensor:
        """``(2/C) S(p − t)``."""
        p = z.softmax(-1)
        return (2.0 / z.shape[-1]) * softmax_jacobian(p, p - t)

    def hessian(self, z: Tensor, t: Tensor) -> Matvec:
        """``(2/C) [S dp + T(dp, p − t)]``."""
        p, scale = z.softmax(-1), 2.0 / z.shape[-1]

        def product(u: Tensor) -> Tensor:
            dp = softmax_jacobian(p, u)
            return scale * (softmax_jacobian(p, dp) + softmax_second(p, dp, p - t))

        return product

    def gauss_newton(self, z: Tensor, t: Tensor) -> Matvec:
        """``(2/C) S dp``."""
        p, scale = z.softmax(-1), 2.0 / z.shape[-1]
        return lambda u: scale * softmax_jacobian(p, softmax_jacobian(p, u))
