"""Π-Model (Laine & Aila, 2017: "Temporal Ensembling for Semi-Supervised Learning")."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import Context, Method, Net, Pass, Views
from wrssl.hypergrad import LOSSES
from wrssl.methods.augmentations import weak
from wrssl.registry import register_method


@register_method("pi")
class PiModel(Method):
    """The predictions on two random views of the same example agree.

        r_j = (1/C) ‖p(x'_j) − sg p(x''_j)‖²,   x', x'': weak views of x (augmentation, then noise of N(0, σ²))

    The gradient flows through the first view only. Augmentation and σ belong to the scenario, so that every method
    sees the same.
    """

    summary: ClassVar[str] = "two random views of an example agree"
    compares_views: ClassVar[bool] = True
    curvature = "mse"

    def __init__(self, coef: float = 20.0, lr: float = 3e-3) -> None:
        self.coef, self.lr = coef, lr

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """The view that learns, then the view that it is compared with."""
        inputs = weak(x, context)
        features = net.features(inputs, Pass.UNLABELED)
        with torch.no_grad():
            targets = net.logits(weak(x, context), Pass.PERTURBED).softmax(1)
        return Views(inputs, Pass.UNLABELED, features, targets)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r_j = (1/C) ‖p_j − t_j‖²."""
        return LOSSES["mse"].value(logits, targets)
