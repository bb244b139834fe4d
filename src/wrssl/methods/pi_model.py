"""Π-Model (Laine & Aila, 2017: "Temporal Ensembling for Semi-Supervised Learning")."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import Context, Method, Net, Pass, Views
from wrssl.hypergrad.zspace import LOSSES
from wrssl.methods.noise import noisy
from wrssl.methods.registry import register_method


@register_method("pi")
class PiModel(Method):
    """Two noisy looks at the same example should agree.

        r_j = (1/C) ‖p(x_j + n') − sg p(x_j + n'')‖²,   n', n'' ~ N(0, σ²)

    The gradient flows through the first look only. σ belongs to the scenario, so that every method sees the same noise.
    """

    summary: ClassVar[str] = "two noisy looks at an example agree"
    curvature = "mse"

    def __init__(self, coef: float = 20.0, lr: float = 3e-3) -> None:
        self.coef, self.lr = coef, lr

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """The look that learns, then the look that it is compared with."""
        inputs = noisy(x, context)
        features = net.features(inputs, Pass.UNLABELED)
        with torch.no_grad():
            targets = net.logits(noisy(x, context), Pass.PERTURBED).softmax(1)
        return Views(inputs, Pass.UNLABELED, features, targets)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r_j = (1/C) ‖p_j − t_j‖²."""
        return LOSSES["mse"].value(logits, targets)
