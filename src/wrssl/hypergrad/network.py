"""The whole network with its exact Hessian: the same problem with derivatives by ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from wrssl.api import DataError, OptionError
from wrssl.hypergrad.flat import FlatProblem, Params
from wrssl.hypergrad.forward import directional
from wrssl.hypergrad.problem import Matvec


class NetworkProblem(FlatProblem):
    """θ = all parameters as one flat vector; the losses are functions of a dictionary of parameters.

    ``L_T(θ, w) = labeled_loss + (λ/B_u) Σ_j w_j r_j + (μ/2)‖θ‖²``. The functions must be pure: no batch-norm buffer
    is updated, no random number drawn anew, so that two calls with equal parameters agree. Usually they call
    ``torch.func.functional_call(model, params, (x,))``.

    Args:
        params: name to tensor, for example ``dict(model.named_parameters())``; copied by ``start``.
        labeled_loss: parameters to the mean labelled loss, a scalar.
        unlabeled_losses: parameters to r, shape ``(B_u,)``.
        validation_loss: parameters to L_V, a scalar.
        w: weights, ``(B_u,)``.
        coef: λ.
        ridge: μ; it belongs to L_T.
        damping: δ, added to the curvature only.
        hessian: ``"forward"`` over reverse repeats both passes in every product and keeps nothing; ``"reverse"``
            over reverse keeps one graph at θ while the solver runs, and then a product costs about half.
    """

    def __init__(
        self,
        params: Mapping[str, Tensor],
        labeled_loss: Callable[[Params], Tensor],
        unlabeled_losses: Callable[[Params], Tensor],
        validation_loss: Callable[[Params], Tensor],
        w: Tensor,
        *,
        coef: float = 1.0,
        ridge: float = 0.0,
        damping: float = 0.0,
        hessian: str = "forward",
    ) -> None:
        if hessian not in ("forward", "reverse"):
            raise OptionError(f'hessian="{hessian}" does not exist: use "forward" or "reverse".')
        super().__init__(params, w, coef, ridge, damping)
        self.labeled, self.unlabeled, self.validation = labeled_loss, unlabeled_losses, validation_loss
        self.hessian = hessian

    def train_loss(self, theta: Tensor) -> Tensor:
        """``labeled_loss + (λ/B_u) Σ_j w_j r_j + (μ/2)‖θ‖²``."""
        loss = self.labeled(self.params(theta)) + self.coef * (self.w * self._losses(theta)).mean()
        return loss + 0.5 * self.ridge * theta.square().sum() if self.ridge else loss

    def train_gradient(self, theta: Tensor) -> Tensor:
        """∇L_T by one backward pass."""
        gradient: Tensor = torch.func.grad(self.train_loss)(theta)
        return gradient

    def curvature(self, theta: Tensor) -> Matvec:
        """``u ↦ d/dt ∇L_T(θ + t u) + δu``, the exact Hessian by either order of derivatives; it is symmetric."""
        if self.hessian == "forward":
            return lambda u: directional(self.train_gradient, theta, u) + self.damping * u
        transposed: Callable[[Tensor], tuple[Tensor]] = torch.func.vjp(self.train_gradient, theta)[1]
        return lambda u: transposed(u)[0] + self.damping * u

    def validation_loss(self, theta: Tensor) -> Tensor:
        """L_V."""
        return self.validation(self.params(theta))

    def validation_gradient(self, theta: Tensor) -> Tensor:
        """∇L_V by one backward pass."""
        gradient: Tensor = torch.func.grad(self.validation_loss)(theta)
        return gradient

    def mixed(self, theta: Tensor, q: Tensor) -> Tensor:
        """``−(λ/B_u) d/dt r_j(θ + t q)``: one forward-mode pass gives the derivatives of all examples."""
        along = directional(self._losses, theta, q)
        return (-self.coef / max(1, self.w.numel())) * along

    def _losses(self, theta: Tensor) -> Tensor:
        r = self.unlabeled(self.params(theta))
        if r.shape != self.w.shape:
            raise DataError(
                f"The unlabelled losses have shape {tuple(r.shape)}, the weights {tuple(self.w.shape)}: "
                "return one loss per example, never a mean or a column."
            )
        return r
