"""FixMatch (Sohn et al., 2020: "FixMatch: Simplifying Semi-Supervised Learning with Consistency and Confidence")."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import Context, Method, Net, Pass, Views
from wrssl.hypergrad import LOSSES
from wrssl.methods.augmentations import strong, weak
from wrssl.registry import register_method


@register_method("fixmatch")
class FixMatch(Method):
    """The confident decision on a weak view is the label of a strong view.

        t_j = 1[max p(x'_j) ≥ τ] · onehot(argmax p(x'_j)),   r_j = −Σ_c t_jc log p_c(x''_j)

    with a weak view x' and a strong view x''; t is a constant. Below the threshold loss and gradient are exactly 0, and
    the example counts in the mean all the same. Without augmentation and noise, which belong to the scenario, this is
    Pseudo-Label. The learning rate is one for Adam and batches of equal size; the original takes 7 times more
    unlabeled than labeled rows, and SGD with momentum.

    Args:
        threshold: τ.
    """

    summary: ClassVar[str] = "the confident prediction is the label of a distorted example"
    compares_views: ClassVar[bool] = True
    curvature = "ce"

    def __init__(self, threshold: float = 0.95, coef: float = 1.0, lr: float = 3e-3) -> None:
        self.threshold, self.coef, self.lr = threshold, coef, lr

    def targets(self, logits: Tensor) -> Tensor:
        """t, shape (B, C), from the logits of the weak view."""
        p = logits.softmax(1)
        confidence, label = p.max(1, keepdim=True)
        return torch.zeros_like(p).scatter(1, label, (confidence >= self.threshold).to(p))

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """The pass that decides, then the pass that learns."""
        with torch.no_grad():
            targets = self.targets(net.logits(weak(x, context), Pass.UNLABELED))
        distorted = strong(x, context)
        features = net.features(distorted, Pass.PERTURBED)
        return Views(distorted, Pass.PERTURBED, features, targets)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r_j = −Σ_c t_jc log p_jc."""
        return LOSSES["ce"].value(logits, targets)
