"""The whole network with its Gauss-Newton matrix: network derivatives of the logits, closed forms for the losses.

    H ≈ Σ_i c_i J_iᵀ H_z(z_i) J_i + (μ + δ) I,   J_i = dz_i/dθ,   c_i = 1/B_l on labelled, λ w_j/B_u on unlabelled rows

It leaves out the curvature of the network itself, is positive semi-definite where that is not, and a product needs one
forward-mode and one backward pass instead of a second derivative; so the network may consist of functions that can be
differentiated only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.api import DataError
from wrssl.hypergrad.flat import FlatProblem, Params
from wrssl.hypergrad.forward import tangent
from wrssl.hypergrad.problem import Matvec
from wrssl.hypergrad.zspace import LOSSES, LogitLoss, logit_loss


class LogitRows(NamedTuple):
    """A batch as a function of the parameters.

    Args:
        logits: parameters to logits, ``(B, C)``; pure, and two calls with equal parameters agree.
        targets: classes ``(B,)`` of labelled and validation rows, targets ``(B, C)`` of unlabelled ones.
    """

    logits: Callable[[Params], Tensor]
    targets: Tensor


class LogitProblem(FlatProblem):
    """θ = all parameters as one flat vector, ``L_T(θ, w) = mean CE(labelled) + (λ/B_u) Σ_j w_j r_j + (μ/2)‖θ‖²``.

    Args:
        params: name to tensor, for example ``dict(model.named_parameters())``.
        labeled: the labelled rows; None where the unlabelled term is all of L_T.
        unlabeled: the unlabelled rows.
        validation: the validation rows.
        w: weights, ``(B_u,)``.
        zloss: r as a function of logits: ``"ce"``, ``"mse"``, ``"kl"``, ``"entropy"``, or ``automatic(function)``.
        coef: λ.
        ridge: μ; it belongs to L_T.
        damping: δ, added to the curvature only.
    """

    def __init__(
        self,
        params: Mapping[str, Tensor],
        labeled: LogitRows | None,
        unlabeled: LogitRows,
        validation: LogitRows,
        w: Tensor,
        *,
        zloss: str | LogitLoss,
        coef: float = 1.0,
        ridge: float = 0.0,
        damping: float = 0.0,
    ) -> None:
        super().__init__(params, w, coef, ridge, damping)
        self.labeled, self.unlabeled, self.validation = labeled, unlabeled, validation
        self.zloss = logit_loss(zloss)

    def train_loss(self, theta: Tensor) -> Tensor:
        """``mean CE + (λ/B_u) Σ_j w_j r_j + (μ/2)‖θ‖²``."""
        loss = self.coef * (self.w * self._losses(theta)).mean()
        if self.labeled is not None:
            loss = _cross_entropy(self._logits(self.labeled, theta), self.labeled.targets) + loss
        return loss + 0.5 * self.ridge * theta.square().sum() if self.ridge else loss

    def train_gradient(self, theta: Tensor) -> Tensor:
        """∇L_T by one backward pass."""
        known = self.known_gradient(theta)
        return _gradient(self.train_loss, theta) if known is None else known

    def curvature(self, theta: Tensor) -> Matvec:
        """``u ↦ Σ_i c_i J_iᵀ H_z(z_i) J_i u + (μ + δ) u``; the graph of the logits is kept for all products."""
        with torch.enable_grad():
            leaf = theta.detach().requires_grad_()
            z_u = self._logits(self.unlabeled, leaf)
            z_l = None if self.labeled is None else self._logits(self.labeled, leaf)
        self._check(z_u[:, 0])
        unlabeled = self.zloss.gauss_newton(z_u.detach(), self.unlabeled.targets)
        c_u = (self.w * (self.coef / max(1, len(self.w)))).unsqueeze(1)
        terms = [(self.unlabeled, z_u, c_u, unlabeled)]
        if self.labeled is not None and z_l is not None:
            labeled = LOSSES["ce"].hessian(z_l.detach(), _rows(self.labeled.targets, z_l))
            terms.insert(0, (self.labeled, z_l, z_l.new_tensor(1 / max(1, len(z_l))), labeled))

        def product(u: Tensor) -> Tensor:
            s = [c * curve(tangent(partial(self._logits, rows), theta, u)) for rows, _, c, curve in terms]
            (back,) = torch.autograd.grad([z for _, z, _, _ in terms], leaf, s, retain_graph=True)
            return back + (self.ridge + self.damping) * u

        return product

    def validation_loss(self, theta: Tensor) -> Tensor:
        """Mean cross-entropy of the validation rows."""
        return _cross_entropy(self._logits(self.validation, theta), self.validation.targets)

    def validation_gradient(self, theta: Tensor) -> Tensor:
        """∇L_V by one backward pass."""
        return _gradient(self.validation_loss, theta)

    def mixed(self, theta: Tensor, q: Tensor) -> Tensor:
        """``−(λ/B_u) d/dt r_j(θ + t q)``: one forward-mode pass gives the derivatives of all examples."""
        along = tangent(self._losses, theta.detach(), q)
        return (-self.coef / max(1, len(self.w))) * along

    def _losses(self, theta: Tensor) -> Tensor:
        return self._check(self.zloss.value(self._logits(self.unlabeled, theta), self.unlabeled.targets))

    def _check(self, rows: Tensor) -> Tensor:
        """Refuse another number than one per weight: broadcasting would hide it."""
        if rows.shape != self.w.shape:
            raise DataError(
                f"The unlabelled rows give shape {tuple(rows.shape)}, the weights have {tuple(self.w.shape)}: "
                "give one weight and one loss per example."
            )
        return rows

    def _logits(self, rows: LogitRows, theta: Tensor) -> Tensor:
        return rows.logits(self.params(theta))


def _rows(classes: Tensor, like: Tensor) -> Tensor:
    return F.one_hot(classes, like.shape[1]).to(like.dtype)


def _cross_entropy(z: Tensor, classes: Tensor) -> Tensor:
    return LOSSES["ce"].value(z, _rows(classes, z)).mean()


def _gradient(function: Callable[[Tensor], Tensor], theta: Tensor) -> Tensor:
    with torch.enable_grad():
        leaf = theta.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(function(leaf), leaf)
    return gradient
