"""What the outer problem minimises on the validation rows: cross-entropy, or the expected error.

Cross-entropy, the paper's choice, also asks how *confident* the predictions are. A network with few labels is soon too
sure of itself, and then everything that makes it less sure lowers the cross-entropy, foreign members included, while
members that confirm what it knows raise it. The expected error of a prediction drawn from the softmax,

    r = 1 − p_y,   p = softmax(β z),   dr/dz = β p_y (p − y),

asks how *right* they are. β > 0 is the sharpness with the lowest cross-entropy of these very rows, so that an overall
factor of the logits means nothing; it is found once and then a constant.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from wrssl.api import OptionError
from wrssl.hypergrad.zspace import LOSSES

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
        logits: gives those at which β is found; asked only where there is one to find.
        y: their classes.
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
    problem is convex. A step at most doubles or halves β. Rows that are all right would have it infinite: there is no
    error to speak of then, and the steps run out. Logits that say nothing leave it at 1.
    """
    beta, right = z.new_ones(()), (y * z).sum(-1)
    for _ in range(NEWTON_STEPS):
        p = (beta * z).softmax(-1)
        mean = (p * z).sum(-1)
        slope, curvature = (mean - right).mean(), ((p * z * z).sum(-1) - mean * mean).mean()
        step = slope / curvature.clamp_min(torch.finfo(z.dtype).tiny)
        beta = torch.maximum(torch.minimum(beta - step, 2 * beta), beta / 2).clamp(*RANGE)
    return torch.nan_to_num(beta, 1.0)
