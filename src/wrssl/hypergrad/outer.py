"""The outer loss L_V on the validation rows: cross-entropy, or the expected error.

Cross-entropy, the paper's choice, also depends on how *confident* the predictions are. A network with few labels soon
becomes overconfident, and then everything that lowers its confidence lowers the cross-entropy, OOD members included,
while members that confirm its predictions raise it. The expected error of a prediction drawn from the softmax,

    r = 1 − p_y,   p = softmax(β z),   dr/dz = β p_y (p − y),

depends on how *correct* they are. β > 0 is the sharpness with the lowest cross-entropy on these same rows, so that an
overall factor of the logits has no effect; it is found once and then a constant.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from wrssl.errors import OptionError
from wrssl.hypergrad.logit_losses import LOSSES

OUTER_LOSSES = ("ce", "error")
NEWTON_STEPS, RANGE = 12, (1e-2, 1e2)


def check_outer_loss(name: str) -> str:
    """The name, if it exists."""
    if name not in OUTER_LOSSES:
        raise OptionError(f"outer_loss must be one of {', '.join(OUTER_LOSSES)}, not {name!r}.")
    return name


class OuterLoss:
    """Mean loss of rows of logits ``z`` with one-hot rows ``y``, both ``(B, C)``, and its derivative by ``z``.

    Args:
        name: ``"ce"`` or ``"error"``.
        logits: returns the logits at which β is found; called for ``"error"`` only.
        y: their classes, one-hot rows.
    """

    def __init__(self, name: str, logits: Callable[[], Tensor], y: Tensor) -> None:
        self.name = check_outer_loss(name)
        self.sharpness = best_sharpness(logits(), y) if name == "error" else y.new_ones(())

    def value(self, z: Tensor, y: Tensor) -> Tensor:
        """The mean of ``−log p_y`` or of ``1 − p_y``."""
        if self.name == "ce":
            return LOSSES["ce"].value(z, y).mean()
        return 1 - (y * (self.sharpness * z).softmax(-1)).sum(-1).mean()

    def gradient(self, z: Tensor, y: Tensor) -> Tensor:
        """Row by row, ``(B, C)``; the mean over the rows is taken by 1/B."""
        if self.name == "ce":
            return LOSSES["ce"].gradient(z, y) / len(z)
        p = (self.sharpness * z).softmax(-1)
        return self.sharpness * (y * p).sum(-1, keepdim=True) * (p - y) / len(z)


def best_sharpness(z: Tensor, y: Tensor) -> Tensor:
    """``argmin_β mean CE(βz)``, by Newton's method within ``RANGE``.

    With m = Σ_c p_c z_c the derivative by β is the mean of m − z_y, the second one the mean variance of z under p: the
    problem is convex. A step at most doubles or halves β. Where all rows are classified correctly, the best β is
    infinite, and the upper end of ``RANGE`` or the last step ends the search. Logits that are all equal, or NaN, leave
    β at 1.
    """
    beta, right = z.new_ones(()), (y * z).sum(-1)
    for _ in range(NEWTON_STEPS):
        p = (beta * z).softmax(-1)
        mean = (p * z).sum(-1)
        slope, curvature = (mean - right).mean(), ((p * z * z).sum(-1) - mean * mean).mean()
        step = slope / curvature.clamp_min(torch.finfo(z.dtype).tiny)
        beta = torch.maximum(torch.minimum(beta - step, 2 * beta), beta / 2).clamp(*RANGE)
    return torch.nan_to_num(beta, 1.0)
