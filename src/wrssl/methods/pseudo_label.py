"""Pseudo-Label (Lee, 2013: "Pseudo-Label: The Simple and Efficient Semi-Supervised Learning Method")."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.api import Context, Method, Net, Pass, Views
from wrssl.hypergrad import LOSSES
from wrssl.registry import register_method


@register_method("pl")
class PseudoLabel(Method):
    """The network's own confident prediction is the label.

        t_j = 1[max p_j ≥ τ] · onehot(argmax p_j),   r_j = −Σ_c t_jc log p_jc

    with p of the same pass; t is a constant. Below the threshold loss and gradient are exactly 0.

    Args:
        threshold: τ.
    """

    summary: ClassVar[str] = "the confident prediction is the label"
    curvature = "ce"

    def __init__(self, threshold: float = 0.95, coef: float = 1.0, lr: float = 3e-4) -> None:
        self.threshold, self.coef, self.lr = threshold, coef, lr

    def targets(self, logits: Tensor) -> Tensor:
        """t, shape (B, C), from the logits of the same pass."""
        p = logits.detach().softmax(1)
        confidence, label = p.max(1, keepdim=True)
        confident = confidence >= self.threshold
        onehot = F.one_hot(label.squeeze(1), p.shape[1]).to(p.dtype)
        return confident * onehot

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """One clean pass, whose own prediction is the target."""
        features = net.features(x, Pass.UNLABELED)
        with torch.no_grad():
            targets = self.targets(net.head(features))
        return Views(x, Pass.UNLABELED, features, targets)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r_j = −Σ_c t_jc log p_jc."""
        return LOSSES["ce"].value(logits, targets)
