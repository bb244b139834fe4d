"""UDA (Xie et al., 2020: "Unsupervised Data Augmentation for Consistency Training")."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import Context, Method, Net, OptionError, Pass, Views
from wrssl.hypergrad import LOSSES
from wrssl.methods.augmentations import strong, weak
from wrssl.registry import register_method


@register_method("uda")
class UDA(Method):
    """The prediction on a strong view equals the sharpened prediction on a weak view.

        r_j = 1[max_c p_c(x'_j) > τ] · KL(sg softmax(z(x'_j)/T) ‖ p(x''_j)),   x': weak view, x'': strong view

    The gradient flows through the strong view only. The prediction must exceed τ before it is sharpened, strictly;
    an example that does not has loss and gradient exactly 0, and counts in the mean all the same. Augmentation and
    noise belong to the scenario.

    The original takes 7 times more unlabeled than labeled rows and SGD with momentum. The learning rate here is one
    for Adam, and for batches of equal size. Its optional annealing of the labeled loss (TSA) is not built: it changes
    the labeled term, which is the same for all methods.

    Args:
        threshold: τ.
        T: the temperature of the target; below 1 sharpens.
    """

    summary: ClassVar[str] = "a distorted example keeps the sharpened confident prediction"
    compares_views: ClassVar[bool] = True
    curvature = "ce"  # the entropy of the target is a constant

    def __init__(self, threshold: float = 0.8, T: float = 0.4, coef: float = 1.0, lr: float = 3e-3) -> None:
        if not T > 0:
            raise OptionError(f"The temperature T of uda must be above 0, but it is {T}.")
        self.threshold, self.T, self.coef, self.lr = threshold, T, coef, lr

    def targets(self, logits: Tensor) -> Tensor:
        """t, shape (B, C): the sharpened prediction on the weak view, or a row of zeros below the threshold."""
        confident = logits.softmax(1).amax(1, keepdim=True) > self.threshold
        return confident * (logits / self.T).softmax(1)

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """The weak view, which gives the target, then the strong view, which learns it."""
        with torch.no_grad():
            targets = self.targets(net.logits(weak(x, context), Pass.UNLABELED))
        inputs = strong(x, context)
        return Views(inputs, Pass.PERTURBED, net.features(inputs, Pass.PERTURBED), targets)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r_j = Σ_c t_jc log t_jc − Σ_c t_jc log p_jc, with 0 log 0 = 0."""
        return torch.xlogy(targets, targets).sum(1) + LOSSES["ce"].value(logits, targets)
