"""What every loss in logit space provides, and the two derivatives of softmax that all closed forms are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from wrssl.hypergrad.problem import Matvec


def softmax_jacobian(p: Tensor, u: Tensor) -> Tensor:
    """``S u = p∘u − p (p·u)``: how p = softmax(z) moves when z moves by u.

    S is symmetric and positive semi-definite, has no eigenvalue above ½ and kills the constant vector.
    """
    pu = p * u
    return pu - p * pu.sum(-1, keepdim=True)


def softmax_second(p: Tensor, dp: Tensor, a: Tensor) -> Tensor:
    """``T(dp, a) = dp∘a − dp (p·a) − p (dp·a)``: how ``S a`` moves when p moves by dp, for a constant a."""
    return dp * (a - (p * a).sum(-1, keepdim=True)) - p * (dp * a).sum(-1, keepdim=True)


class LogitLoss(ABC):
    """r(z, t) per example, and its derivatives with respect to z; t is a constant."""

    row_targets: bool = True
    """Whether the targets must have one entry per class, shape ``(B, C)``."""

    @abstractmethod
    def value(self, z: Tensor, t: Tensor) -> Tensor:
        """r, shape ``(B,)``."""

    @abstractmethod
    def gradient(self, z: Tensor, t: Tensor) -> Tensor:
        """dr/dz, shape ``(B, C)``."""

    @abstractmethod
    def hessian(self, z: Tensor, t: Tensor) -> Matvec:
        """``u ↦ (d²r/dz²) u``, row by row; indefinite for some losses."""

    @abstractmethod
    def gauss_newton(self, z: Tensor, t: Tensor) -> Matvec:
        """``u ↦ G u`` with a positive semi-definite G close to the Hessian."""

    def softmax_multiple(self, t: Tensor) -> Tensor | None:
        """The number m of each row, ``(B, 1)``, where ``gauss_newton`` is m times the Jacobian of the softmax."""
        return None
