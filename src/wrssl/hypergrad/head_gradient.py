"""`head_hypergradient`: the closed-form hypergradient of a last layer as one function of plain tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from wrssl.api import DataError
from wrssl.hypergrad.head import HeadProblem
from wrssl.hypergrad.implicit import implicit_hypergradient
from wrssl.hypergrad.zspace import LogitLoss


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
    """dL_V/dw of a last layer: how the validation loss answers to each unlabelled example's weight.

    The training loss is ``mean CE(h_l) + coef · mean(w · r(h_u)) + ridge/2 · ‖(W, b)‖²``, the validation loss
    ``mean CE(h_v)``, or the expected error. Features are constants. A positive entry means: less weight on this
    example lowers the validation loss. With ``solver="exact"`` and a head that minimises the training loss the result
    is exact; away from the minimum, ``lookahead`` steps on a copy of the head come first.

    Args:
        W: weights of the last layer, ``(C, d)``.
        b: its bias, ``(C,)``, or None.
        h_l: labelled features, ``(B_l, d)``.
        y_l: their classes, ``(B_l,)``.
        h_u: unlabelled features, ``(B_u, d)``.
        targets: targets of the unlabelled loss, ``(B_u, C)``.
        w: weights, ``(B_u,)``.
        h_v: validation features, ``(B_v, d)``.
        y_v: their classes, ``(B_v,)``.
        loss: r: ``"ce"`` = −Σ targets · log softmax, ``"mse"``, ``"kl"``, ``"entropy"``, or ``automatic(function)``.
        coef: λ.
        ridge: μ.
        solver: ``"exact"``, ``"cg"``, ``"neumann"``, or a function ``solve(matvec, b)``.
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
        *(W, b, h_l, y_l, h_u, targets, w, h_v, y_v),
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
