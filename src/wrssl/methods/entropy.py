"""Entropy minimization (Grandvalet & Bengio, 2005: "Semi-supervised Learning by Entropy Minimization")."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from wrssl.api import Context, Method, Net, Pass, Views
from wrssl.hypergrad import LOSSES
from wrssl.registry import register_method


@register_method("entmin")
class EntropyMinimisation(Method):
    """Predictions on the pool should be certain: r_j = −Σ_c p_jc log p_jc."""

    summary: ClassVar[str] = "predictions on the pool are certain"
    curvature = "entropy"

    def __init__(self, coef: float = 0.06, lr: float = 3e-3) -> None:
        self.coef, self.lr = coef, lr

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """One clean pass; there is no target."""
        features = net.features(x, Pass.UNLABELED)
        return Views(x, Pass.UNLABELED, features, features.new_zeros(len(x), 0))

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r_j = −Σ_c p_jc log p_jc."""
        return LOSSES["entropy"].value(logits, targets)
