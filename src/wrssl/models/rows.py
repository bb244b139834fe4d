"""Networks for rows of an embedding: ``linear`` and ``two-layer``, both on the directions of the rows.

The first layer of both is u = s · (x − c)/‖x − c‖ with the mean c of the pool, which is a buffer: model, checkpoint and
export carry it, and nothing else has to know it.

``linear`` has s = 1 and the weight decay 1/(10 n) for n labels. On the labels alone it is logistic regression with
C = 10 on centered rows of length 1, the probe that a careful user would train by hand, and training moves away from the
probe only as far as the pool gives reason to. ``two-layer`` has s = √d, so that the values of u are about 1 in size.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wrssl.data import unit_rows
from wrssl.models.build import init_default
from wrssl.registry import register_model

if TYPE_CHECKING:
    from wrssl.data import Scenario


class UnitRows(nn.Module):
    """u = s · (x − c)/‖x − c‖.

    Args:
        columns: d.
        scale: s.

    Attributes:
        center: c, (d,); 0 until it is set.
    """

    center: Tensor

    def __init__(self, columns: int, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.register_buffer("center", torch.zeros(columns))

    def forward(self, x: Tensor) -> Tensor:
        """u, in the shape of ``x``."""
        return unit_rows(x.flatten(1), self.center) * self.scale


def set_center(model: nn.Module, scenario: Scenario) -> None:
    """Let every ``UnitRows`` of the model have the center of this scenario's pool."""
    for module in model.modules():
        if isinstance(module, UnitRows):
            with torch.no_grad():
                module.center.copy_(scenario.center)


def init_rows(model: nn.Module, generator: torch.Generator) -> None:
    """The defaults of torch, and no center yet."""
    init_default(model, generator)
    for module in model.modules():
        if isinstance(module, UnitRows):
            nn.init.zeros_(module.center)


@register_model("linear", images=False, init=init_rows, lr=0.03, C=10.0)
class LinearOnRows(nn.Module):
    """z = W u + b.

    Args:
        input_shape: shape of one example.
        num_classes: number of classes.
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        columns = math.prod(input_shape)
        self.rows = UnitRows(columns)
        self.head = nn.Linear(columns, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape ``(B, C)``."""
        logits: Tensor = self.head(self.rows(x))
        return logits


@register_model("two-layer", images=False, init=init_rows)
class TwoLayerOnRows(nn.Module):
    """z = W₂ ReLU(BN(W₁ u)) + b₂.

    Args:
        input_shape: shape of one example.
        num_classes: number of classes.
        batch_norm: put a batch norm after the hidden layer.
        hidden: width of the hidden layer.
    """

    def __init__(
        self, input_shape: tuple[int, ...], num_classes: int, batch_norm: bool = True, hidden: int = 256
    ) -> None:
        super().__init__()
        columns = math.prod(input_shape)
        self.rows = UnitRows(columns, math.sqrt(columns))
        self.fc = nn.Linear(columns, hidden, bias=not batch_norm)
        self.bn = nn.BatchNorm1d(hidden) if batch_norm else nn.Identity()
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape ``(B, C)``."""
        logits: Tensor = self.head(F.relu(self.bn(self.fc(self.rows(x)))))
        return logits
