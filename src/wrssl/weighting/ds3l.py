"""DS3L (Guo, Zhang, Jiang, Li, Zhou, 2020: "Safe Deep Semi-Supervised Learning for Unseen-Class Unlabeled Data")."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from wrssl.api import BatchWeights, HypergradientRequest
from wrssl.hypergrad import check_request
from wrssl.registry import register_weighting
from wrssl.weighting.weight_net import WeightNetWeighting

TINY = 1e-12


@register_weighting("ds3l")
class DS3L(WeightNetWeighting):
    """The weight is a function of the prediction: w_j = V(sg p_j; Φ), V a network C-100-1, and weights are normalized.

        θ̂ = θ − η ∇_θ [CE + λ Σ_j w_j r_j / Σ_j w_j],   Φ ← Adam(∇_Φ CE(θ̂; the same labeled batch))
        loss = CE + λ Σ_j sg w_j r_j / Σ_j w_j

    With the factors f_j = B w_j / Σ_k w_k the term is the mean of f_j r_j, and dL/dw_j = (B/Σw) (g_j − Σ_k f_k g_k / B)
    for g = dL/df: only differences between members count, so that the pool cannot be switched off as a whole.

    The authors' code lets gradients of the virtual step also run through the softmax into V; here the weights are
    constants for the network, as in the step that is really taken.

    Args:
        scope: ``"network"`` (as its authors) or ``"head"``, the virtual step of the last layer only.
        hidden: width of V.
        meta_lr: learning rate of V; its authors tune it for each data set.
        inner_lr: η.
        outer: ``"labeled"`` (as its authors) or ``"validation"``.
    """

    summary: ClassVar[str] = "DS3L: a small network reads the weight from the prediction, taught by the labeled batch"

    def __init__(
        self,
        scope: str = "network",
        hidden: int = 100,
        meta_lr: float = 6e-5,
        inner_lr: float = 1e-3,
        outer: str = "labeled",
    ) -> None:
        one_step = HypergradientRequest(scope=scope, J=1, P=0, alpha=inner_lr, mixed_at="start", outer=outer)
        super().__init__(check_request(one_step), hidden, meta_lr, decay=0.0)

    def describe(self, losses: Tensor, probabilities: Tensor) -> Tensor:
        """The softmax."""
        return probabilities

    def inputs(self, num_classes: int) -> int:
        """One number per class."""
        return num_classes

    def batch(self, index: Tensor) -> BatchWeights:
        """W at the last visit, and f_j = B w_j / Σ_k w_k."""
        w = self.table[index]
        return BatchWeights(w, w * (len(w) / w.sum().clamp_min(TINY)), w)

    def through(self, index: Tensor, gradient: Tensor) -> Tensor:
        """(B/Σw) (g_j − Σ_k f_k g_k / B)."""
        now = self.batch(index)
        w, f = now.weight.to(gradient), now.factor.to(gradient)
        return (gradient - (f * gradient).mean()) * (len(w) / w.sum().clamp_min(TINY))
