"""Losses as functions of the logits z, with their derivatives in closed form.

Notation: p = softmax(z); t = target, a constant; ``S`` and ``T`` as in the first two functions; all tensors
``(B, C)``, one example per row, or ``(C,)`` for a single example. Each loss linearizes once and multiplies often:
``hessian(z, t)`` and ``gauss_newton(z, t)`` return functions of u.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from wrssl.errors import OptionError
from wrssl.hypergrad.forward import directional
from wrssl.hypergrad.problem import Matvec


def softmax_jacobian(p: Tensor, u: Tensor) -> Tensor:
    """``S u = p∘u − p (p·u)``: the change of p = softmax(z) when z changes by u.

    S is symmetric and positive semi-definite, has no eigenvalue above ½ and maps the constant vector to 0.
    """
    pu = p * u
    return pu - p * pu.sum(-1, keepdim=True)


def softmax_second(p: Tensor, dp: Tensor, a: Tensor) -> Tensor:
    """``T(dp, a) = dp∘a − dp (p·a) − p (dp·a)``: the change of ``S a`` when p changes by dp, for a constant a."""
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


class CrossEntropy(LogitLoss):
    """Cross-entropy with soft or scaled targets: Pseudo-Label, FixMatch, UDA, VAT in Miyato's direction.

    ``r = −Σ_c t_c log p_c`` with rows of t that sum to any m ≥ 0: gradient ``m p − t``, Hessian ``m S``.
    """

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


class SquaredError(LogitLoss):
    """Squared error between probabilities: Π-Model, Mean Teacher, MixMatch.

    ``r = (1/C) ‖p − t‖²``: gradient ``(2/C) S(p − t)``.
    """

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


class ReverseKL(LogitLoss):
    """KL(p‖t), student first: VAT in the direction of Oliver et al.

    ``r = KL(p‖t) = Σ_c p_c a_c`` with ``a = log p − log t``: gradient ``S a``. log t is taken no lower than the
    logarithm of the type's smallest normal number, so that t = 0 stays finite.
    """

    def value(self, z: Tensor, t: Tensor) -> Tensor:
        """``Σ_c p_c (log p_c − log t_c)``."""
        log_p = z.log_softmax(-1)
        return (log_p.exp() * (log_p - _finite_log(t))).sum(-1)

    def gradient(self, z: Tensor, t: Tensor) -> Tensor:
        """``S a``."""
        log_p = z.log_softmax(-1)
        return softmax_jacobian(log_p.exp(), log_p - _finite_log(t))

    def hessian(self, z: Tensor, t: Tensor) -> Matvec:
        """``dp + T(dp, a)``."""
        log_p = z.log_softmax(-1)
        p, a = log_p.exp(), log_p - _finite_log(t)

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
        return torch.ones_like(t[..., :1])


def _finite_log(t: Tensor) -> Tensor:
    return t.clamp_min(torch.finfo(t.dtype).tiny).log()


class Entropy(LogitLoss):
    """The entropy of the prediction: entropy minimization.

    ``r = −Σ_c p_c log p_c``, no target: gradient ``−S log p``.
    """

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


class Automatic(LogitLoss):
    """``r = loss(z, t)`` with derivatives by ``torch.func``, for methods without a closed form.

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

        A loss given as a program has no Gauss-Newton matrix of its own, because the program does not state which part
        of it is the model's output. This projection is the Hessian where that is positive semi-definite already. The
        closed forms above choose differently (for example ``S`` for KL(p‖t)), and cheaper.
        """
        product = self.hessian(z, t)
        basis = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
        columns: Tensor = torch.func.vmap(lambda e: product(e.expand_as(z)))(basis)  # (C, B, C)
        blocks = columns.transpose(0, 1)
        values, vectors = torch.linalg.eigh(0.5 * (blocks + blocks.mT))
        psd = (vectors * values.clamp_min(0.0).unsqueeze(-2)) @ vectors.mT
        return lambda u: (psd @ u.unsqueeze(-1)).squeeze(-1)


LOSSES: dict[str, LogitLoss] = {
    "ce": CrossEntropy(),
    "mse": SquaredError(),
    "kl": ReverseKL(),
    "entropy": Entropy(),
}


def logit_loss(loss: str | LogitLoss) -> LogitLoss:
    """A loss by its name; a ``LogitLoss`` is returned as it is."""
    if isinstance(loss, LogitLoss):
        return loss
    if loss not in LOSSES:
        raise OptionError(f'There is no closed form for the loss "{loss}": use one of {", ".join(LOSSES)}.')
    return LOSSES[loss]


def automatic(loss: Callable[[Tensor, Tensor], Tensor]) -> LogitLoss:
    """A ``LogitLoss`` from any per-example function ``loss(z, t) -> (B,)``."""
    return Automatic(loss)
