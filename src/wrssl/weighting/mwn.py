"""Meta-Weight-Net (Shu et al., 2019: "Meta-Weight-Net: Learning an Explicit Mapping For Sample Weighting")."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from wrssl.api import HypergradientRequest
from wrssl.hypergrad import check_request
from wrssl.registry import register_weighting
from wrssl.weighting.weight_net import WeightNetWeighting


@register_weighting("mwn")
class MetaWeightNet(WeightNetWeighting):
    """The weight is a function of the loss: w_j = V(sg r_j; Φ), V a network 1-100-1.

        θ̂ = θ − η ∇_θ [CE + λ (1/B) Σ_j V(r_j; Φ) r_j],   Φ ← Adam(∇_Φ L_V(θ̂))
        loss = CE + λ (1/B) Σ_j sg V(r_j; Φ) r_j

    with η the current learning rate and no momentum in the virtual step. By the chain rule ∇_Φ L_V(θ̂) is
    Σ_j (dL_V(θ̂)/dw_j) dV(r_j)/dΦ, with dL_V(θ̂)/dw_j = −η (λ/B) ⟨∇r_j(θ), ∇L_V(θ̂)⟩: no second graph is needed.

    Args:
        scope: ``"network"`` (as its authors) or ``"head"``, the virtual step of the last layer only.
        hidden: width of V.
        meta_lr: learning rate of V.
        decay: its L2 penalty.
    """

    summary: ClassVar[str] = "Meta-Weight-Net: a small network reads the weight from the loss"

    def __init__(self, scope: str = "network", hidden: int = 100, meta_lr: float = 1e-3, decay: float = 1e-4) -> None:
        one_step = check_request(HypergradientRequest(scope=scope, J=1, P=0, alpha="lr", mixed_at="start"))
        super().__init__(one_step, hidden, meta_lr, decay)

    def describe(self, losses: Tensor, probabilities: Tensor) -> Tensor:
        """The loss."""
        return losses.unsqueeze(1)

    def inputs(self, num_classes: int) -> int:
        """One number."""
        return 1
