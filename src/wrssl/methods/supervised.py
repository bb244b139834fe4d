"""Supervised learning: the baseline that ignores the pool."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from wrssl.api import Context, Method, Net, Pass, Views
from wrssl.registry import register_method


@register_method("supervised")
class Supervised(Method):
    """r_j = 0. The loop does not even run the pool through the network (``uses_unlabeled``)."""

    summary: ClassVar[str] = "labels only; the pool is ignored"
    uses_unlabeled: ClassVar[bool] = False
    coef = 0.0

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """One clean pass; nothing is compared with anything."""
        features = net.features(x, Pass.UNLABELED)
        return Views(x, Pass.UNLABELED, features, features.new_zeros(len(x), 0))

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Zero for every example."""
        return logits.new_zeros(len(logits))
