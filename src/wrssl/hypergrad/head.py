"""The last layer on cached features: every derivative in closed form, no autograd graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wrssl.errors import DataError, OptionError
from wrssl.hypergrad.implicit import implicit_hypergradient
from wrssl.hypergrad.logit_losses import LOSSES, LogitLoss, logit_loss
from wrssl.hypergrad.outer import OuterLoss
from wrssl.hypergrad.problem import Matvec, check_weights, feature_rows, one_hot


class HeadRows(NamedTuple):
    """A batch as the last layer sees it.

    Args:
        features: inputs of the last layer, ``(B, d)``.
        targets: classes ``(B,)`` of labeled and validation rows, targets of unlabeled ones, usually ``(B, C)``.
    """

    features: Tensor
    targets: Tensor


class HeadProblem:
    """θ = [W, b], shape ``(C, d+1)``; a feature row h becomes [h; 1], so that z = θ[h; 1].

    ``L_T(θ, w) = (1/B_l) Σ_i CE_i + (λ/B_u) Σ_j w_j r_j + (μ/2)‖θ‖²`` and ``L_V(θ) = mean CE`` on the validation rows,
    or their expected error (``outer.py``).
    Everything is detached on entry; features are converted to the type of W.

    Args:
        W: weights of the last layer, ``(C, d)``.
        b: its bias, ``(C,)``, or None; then θ is W alone.
        labeled: the labeled rows.
        unlabeled: the unlabeled rows.
        validation: the validation rows.
        w: weights of the unlabeled rows, ``(B_u,)``.
        zloss: r as a function of the logits: ``"ce"``, ``"mse"``, ``"kl"``, ``"entropy"`` or a ``LogitLoss``.
        outer_loss: L_V: ``"ce"`` or ``"error"``.
        coef: λ.
        ridge: μ; it belongs to L_T.
        curvature: ``"exact"`` (Hessian) or ``"gauss-newton"`` (positive semi-definite).
        damping: δ, added to the curvature only.
    """

    def __init__(
        self,
        W: Tensor,
        b: Tensor | None,
        labeled: HeadRows,
        unlabeled: HeadRows,
        validation: HeadRows,
        w: Tensor,
        *,
        zloss: str | LogitLoss = "ce",
        outer_loss: str = "ce",
        coef: float = 1.0,
        ridge: float = 0.0,
        curvature: str = "exact",
        damping: float = 0.0,
    ) -> None:
        if curvature not in ("exact", "gauss-newton"):
            raise OptionError(f'curvature="{curvature}" does not exist: use "exact" or "gauss-newton".')
        self.zloss, self.coef, self.ridge = logit_loss(zloss), coef, ridge
        self.exact_curvature, self.damping = curvature == "exact", damping
        self.theta = W.detach() if b is None else torch.cat([W, b.unsqueeze(1)], 1).detach()
        classes, bias = W.shape[0], b is not None
        rows_l, self.rows_u, self.rows_v = (feature_rows(h, W, bias) for h, _ in (labeled, unlabeled, validation))
        self.n_l, self.n_u, self.n_v = len(rows_l), len(self.rows_u), len(self.rows_v)
        if self.n_v == 0:
            raise DataError("The hypergradient needs at least one validation example.")
        targets = unlabeled.targets
        if self.zloss.row_targets and targets.shape != (self.n_u, classes):
            raise DataError(
                f"The targets have shape {tuple(targets.shape)}, but this loss needs one probability per class and "
                f"example, shape ({self.n_u}, {classes}); turn class numbers into rows with one_hot."
            )
        # Labeled and unlabeled rows side by side: one matrix product instead of two, forward and backward.
        self.rows = torch.cat([rows_l, self.rows_u])
        self.y_l, self.y_v = (one_hot(y, classes).to(W) for _, y in (labeled, validation))
        self.targets = targets.detach().to(W.dtype) if targets.is_floating_point() else targets.detach()
        self.w = check_weights(w, self.n_u).to(W)
        self.outer = OuterLoss(outer_loss, lambda: self.rows_v @ self.theta.T, self.y_v)

    def start(self) -> Tensor:
        """θ⁰: a copy."""
        return self.theta.clone()

    def with_weights(self, w: Tensor) -> HeadProblem:
        """The same problem with other weights; the rows are shared."""
        return self._changed(w=check_weights(w, self.n_u).to(self.theta))

    def at(self, theta: Tensor) -> HeadProblem:
        """The same problem that starts at another θ."""
        return self._changed(theta=theta.detach())

    def with_exact_hessian(self) -> HeadProblem:
        """The same problem with the exact Hessian, not damped."""
        return self._changed(exact_curvature=True, damping=0.0)

    def double(self) -> HeadProblem:
        """The same problem in float64, for checks against finite differences."""
        floats = {k: v for k, v in vars(self).items() if isinstance(v, Tensor) and v.is_floating_point()}
        return self._changed(**{k: v.double() for k, v in floats.items()})

    def _changed(self, **attributes: Any) -> HeadProblem:
        other = copy.copy(self)
        vars(other).update(attributes)
        return other

    def train_loss(self, theta: Tensor) -> Tensor:
        """``(1/B_l) Σ_i CE_i + (λ/B_u) Σ_j w_j r_j + (μ/2)‖θ‖²``."""
        z = self.rows @ theta.T
        labeled = LOSSES["ce"].value(z[: self.n_l], self.y_l).sum() / max(1, self.n_l)
        unlabeled = (self._per_example() * self.zloss.value(z[self.n_l :], self.targets)).sum()
        return labeled + unlabeled + 0.5 * self.ridge * theta.square().sum()

    def train_gradient(self, theta: Tensor) -> Tensor:
        """``Gᵀ H + μθ`` with row i of G the gradient of row i's term with respect to its logits."""
        z = self.rows @ theta.T
        g_l = LOSSES["ce"].gradient(z[: self.n_l], self.y_l) / max(1, self.n_l)
        g_u = self._per_example().unsqueeze(1) * self.zloss.gradient(z[self.n_l :], self.targets)
        return torch.cat([g_l, g_u]).T @ self.rows + self.ridge * theta

    def curvature(self, theta: Tensor) -> Matvec:
        """``Q ↦ [c_i H_z(z_i) (HQᵀ)_i]ᵀ H + (μ + δ) Q``, c_i = 1/B_l on labeled and λw_j/B_u on unlabeled rows."""
        z = self.rows @ theta.T
        multiple = None if self.exact_curvature else self.zloss.softmax_multiple(self.targets)
        if multiple is not None:
            return self._softmax_product(z.softmax(1), multiple)
        labeled = LOSSES["ce"].hessian(z[: self.n_l], self.y_l)
        linearize = self.zloss.hessian if self.exact_curvature else self.zloss.gauss_newton
        unlabeled = linearize(z[self.n_l :], self.targets)
        c_l, c_u, shift = 1.0 / max(1, self.n_l), self._per_example().unsqueeze(1), self.ridge + self.damping

        def product(q: Tensor) -> Tensor:
            dz = self.rows @ q.T
            s = torch.cat([c_l * labeled(dz[: self.n_l]), c_u * unlabeled(dz[self.n_l :])])
            return s.T @ self.rows + shift * q

        return product

    def _softmax_product(self, p: Tensor, multiple: Tensor) -> Matvec:
        """The same where every row's curvature is a multiple of diag(p) − ppᵀ: all rows at once, in few calls."""
        labeled = p.new_full((self.n_l, 1), 1.0 / max(1, self.n_l))
        weighted = torch.cat([labeled, self._per_example().unsqueeze(1) * multiple]) * p
        shift = self.ridge + self.damping

        def product(q: Tensor) -> Tensor:
            dz = self.rows @ q.T
            s = weighted * (dz - (p * dz).sum(1, keepdim=True))
            out = s.T @ self.rows
            return out + shift * q if shift else out

        return product

    def validation_loss(self, theta: Tensor) -> Tensor:
        """The mean over the validation rows."""
        return self.outer.value(self.rows_v @ theta.T, self.y_v)

    def validation_gradient(self, theta: Tensor) -> Tensor:
        """``Gᵀ H_v`` with row i of G the gradient of row i's term, for cross-entropy ``(p − y)/B_v``."""
        return self.outer.gradient(self.rows_v @ theta.T, self.y_v).T @ self.rows_v

    def mixed(self, theta: Tensor, q: Tensor) -> Tensor:
        """``−(λ/B_u) Σ_c G_jc (H_u qᵀ)_jc`` with ``G = dr/dz``: the derivative of each r_j along q."""
        g = self.zloss.gradient(self.rows_u @ theta.T, self.targets)
        return (-self.coef / max(1, self.n_u)) * (g * (self.rows_u @ q.T)).sum(1)

    def _per_example(self) -> Tensor:
        """``λ w_j / B_u``."""
        return self.w * (self.coef / max(1, self.n_u))


def head_hypergradient(
    W: Tensor,
    b: Tensor | None,
    h_l: Tensor,
    y_l: Tensor,
    h_u: Tensor,
    targets: Tensor,
    w: Tensor,
    h_v: Tensor,
    y_v: Tensor,
    *,
    loss: str | LogitLoss = "ce",
    coef: float = 1.0,
    ridge: float = 0.0,
    solver: str | Callable[..., Tensor] = "exact",
    curvature: str = "exact",
    damping: float = 0.0,
    lookahead: int = 0,
    step: float | None = None,
    mixed_at: str = "end",
    outer_loss: str = "ce",
    **options: Any,
) -> Tensor:
    """dL_V/dw of a last layer: how the validation loss changes with each unlabeled example's weight.

    The training loss is ``mean CE(h_l) + coef · mean(w · r(h_u)) + ridge/2 · ‖(W, b)‖²``, the validation loss
    ``mean CE(h_v)``, or the expected error. Features are constants. A positive entry means: less weight on this
    example lowers the validation loss. With ``solver="exact"`` and a head that minimizes the training loss the result
    is exact; away from the minimum, ``lookahead`` steps on a copy of the head come first.

    Args:
        W: weights of the last layer, ``(C, d)``.
        b: its bias, ``(C,)``, or None.
        h_l: labeled features, ``(B_l, d)``.
        y_l: their classes, ``(B_l,)``.
        h_u: unlabeled features, ``(B_u, d)``.
        targets: targets of the unlabeled loss, ``(B_u, C)``.
        w: weights, ``(B_u,)``.
        h_v: validation features, ``(B_v, d)``.
        y_v: their classes, ``(B_v,)``.
        loss: r: ``"ce"`` = −Σ targets · log softmax, ``"mse"``, ``"kl"``, ``"entropy"``, or ``automatic(function)``.
        coef: λ.
        ridge: μ.
        solver: ``"exact"``, ``"cg"``, ``"neumann"``, another registered name, or a function ``solve(matvec, b)``.
        curvature: ``"exact"`` or ``"gauss-newton"``.
        damping: added to the diagonal of the curvature.
        lookahead: J, the number of gradient steps on a copy of the head.
        step: their size; None takes 1/λ_max.
        mixed_at: where the per-example derivative is taken: ``"end"`` or ``"start"`` of the look-ahead.
        outer_loss: the validation loss: ``"ce"`` or ``"error"`` (``outer.py``).
        options: of the solver, for example ``terms=5, alpha=0.1`` for Neumann or ``iterations=10`` for CG.

    Returns:
        The gradient, shape ``(B_u,)``, without a graph.
    """
    for name, y in (("y_l", y_l), ("y_v", y_v)):
        if y.numel() and not 0 <= int(y.min()) <= int(y.max()) < W.shape[0]:
            raise DataError(f"{name} must hold class numbers from 0 to {W.shape[0] - 1}, one per row of W.")
    problem = HeadProblem(
        *(W, b, HeadRows(h_l, y_l), HeadRows(h_u, targets), HeadRows(h_v, y_v), w),
        zloss=loss,
        coef=coef,
        ridge=ridge,
        curvature=curvature,
        damping=damping,
        outer_loss=outer_loss,
    )
    return implicit_hypergradient(
        problem, solver, lookahead=lookahead, step=step, mixed_at=mixed_at, diagnose=False, **options
    ).gradient
