"""The whole network: all parameters as one vector, with the Gauss-Newton matrix or the exact Hessian.

`LogitProblem` takes network derivatives of the logits and closed forms for the losses,

    H ≈ Σ_i c_i J_iᵀ H_z(z_i) J_i + (μ + δ) I,   J_i = dz_i/dθ,   c_i = 1/B_l on labeled, λ w_j/B_u on unlabeled rows.

This leaves out the curvature of the network itself, is positive semi-definite where that is not, and a product needs
one forward-mode and one backward pass instead of a second derivative; so the network may consist of functions that can
be differentiated only once. `NetworkProblem` takes all derivatives, the exact Hessian too, by ``torch.func``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.errors import DataError, OptionError
from wrssl.hypergrad.forward import directional, tangent
from wrssl.hypergrad.logit_losses import LOSSES, LogitLoss, logit_loss
from wrssl.hypergrad.problem import Matvec, check_weights

Params = dict[str, Tensor]
P = TypeVar("P", bound="FlatProblem")


class FlatProblem:
    """What problems over a dictionary of parameters share: θ, the weights and the numbers of L_T.

    Args:
        params: name to tensor, for example ``dict(model.named_parameters())``; copied.
        w: weights, ``(B_u,)``.
        coef: λ.
        ridge: μ; it belongs to L_T.
        damping: δ, added to the curvature only.
    """

    def __init__(self, params: Mapping[str, Tensor], w: Tensor, coef: float, ridge: float, damping: float) -> None:
        self.shapes = {name: value.shape for name, value in params.items()}
        self.theta = torch.cat([value.detach().reshape(-1) for value in params.values()])
        self.w = check_weights(w, w.numel()).to(self.theta)
        self.coef, self.ridge, self.damping = coef, ridge, damping
        self.known: Callable[[], Tensor] | None = None
        self._started: Tensor | None = None

    def params(self, theta: Tensor) -> Params:
        """The flat vector as a dictionary of parameters."""
        pieces: tuple[Tensor, ...] = torch.split_with_sizes(theta, [s.numel() for s in self.shapes.values()])
        return {name: piece.view(shape) for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)}

    def start(self) -> Tensor:
        """θ⁰: a copy."""
        self._started = self.theta.clone()
        return self._started

    def known_gradient(self, theta: Tensor) -> Tensor | None:
        """∇L_T at θ⁰, where the attribute ``known`` was set to a cheaper way to compute it; None elsewhere.

        A training step has the graph of its loss at θ⁰ already: one backward pass instead of two forward ones as well.
        """
        return self.known() if self.known is not None and theta is self._started else None

    def with_weights(self: P, w: Tensor) -> P:
        """The same problem with other weights."""
        other = copy.copy(self)
        other.w, other.known = check_weights(w, self.w.numel()).to(self.theta), None
        return other

    def at(self: P, theta: Tensor) -> P:
        """The same problem that starts at another θ."""
        other = copy.copy(self)
        other.theta, other.known = theta.detach(), None
        return other


class LogitRows(NamedTuple):
    """A batch as a function of the parameters.

    Args:
        logits: parameters to logits, ``(B, C)``; pure, and two calls with equal parameters agree.
        targets: classes ``(B,)`` of labeled and validation rows, targets ``(B, C)`` of unlabeled ones.
    """

    logits: Callable[[Params], Tensor]
    targets: Tensor


class LogitProblem(FlatProblem):
    """θ = all parameters as one flat vector, ``L_T(θ, w) = mean CE(labeled) + (λ/B_u) Σ_j w_j r_j + (μ/2)‖θ‖²``.

    Args:
        params: name to tensor, for example ``dict(model.named_parameters())``.
        labeled: the labeled rows; None where the unlabeled term is all of L_T.
        unlabeled: the unlabeled rows.
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
        """Refuse any number of rows but one per weight: broadcasting would hide it."""
        if rows.shape != self.w.shape:
            raise DataError(
                f"The unlabeled rows give shape {tuple(rows.shape)}, the weights have {tuple(self.w.shape)}: "
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


class NetworkProblem(FlatProblem):
    """θ = all parameters as one flat vector; the losses are functions of a dictionary of parameters.

    ``L_T(θ, w) = labeled_loss + (λ/B_u) Σ_j w_j r_j + (μ/2)‖θ‖²``. The functions must be pure: they update no
    batch-norm buffer and draw no new random number, so that two calls with equal parameters agree. Usually they call
    ``torch.func.functional_call(model, params, (x,))``.

    Args:
        params: name to tensor, for example ``dict(model.named_parameters())``; copied by ``start``.
        labeled_loss: parameters to the mean labeled loss, a scalar.
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
                f"The unlabeled losses have shape {tuple(r.shape)}, the weights {tuple(self.w.shape)}: "
                "return one loss per example, never a mean or a column."
            )
        return r
