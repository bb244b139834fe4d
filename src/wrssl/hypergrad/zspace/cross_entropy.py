"""Cross-entropy with soft or scaled targets: Pseudo-Label, FixMatch, UDA, VAT in Miyato's direction."""

from __future__ import annotations

from torch import Tensor

from wrssl.hypergrad.problem import Matvec
from wrssl.hypergrad.zspace.base import LogitLoss, softmax_jacobian


class CrossEntropy(LogitLoss):
    """``r = −Σ_c t_c log p_c`` with rows of t that sum to any m ≥ 0: gradient ``m p − t``, Hessian ``m S``."""

    def value(self, z: Tensor, t: Tensor) -> Tensor:
        """``−Σ_c t_c log p_c``."""
        return -(t * z.log_softmax(-1)).sum(-1)

    def gradient(self, z: Tensor, t: Tensor) -> Tensor:
        """``m p − t``."""
        return t.sum(-1, keepdim=True) * z.softmax(-1) - t

    def hessian(self, z: Tensor, t: Tensor) -> Matvec:
        """``m dp``."""
        p, m = z.softmax(-1), t.sum(-1, keepdim=True)
        return lambda u: m * softmax_jacobian(p, u)

    def gauss_newton(self, z: Tensor, t: Tensor) -> Matvec:
        """The Hessian itself: this loss is convex in z."""
        return self.hessian(z, t)

    def softmax_multiple(self, t: Tensor) -> Tensor:
        """``m``."""
        return t.sum(-1, keepdim=True)
