"""The wide residual network of the semi-supervised literature.

Zagoruyko and Komodakis: Wide Residual Networks, BMVC 2016; with leaky ReLU of slope 0.1, as in the evaluation of
Oliver et al. 2018 and the implementations that follow it.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wrssl.models.build import init_norms
from wrssl.models.images import channels_last
from wrssl.registry import register_model

SLOPE = 0.1


def _norm(channels: int, batch_norm: bool) -> nn.Module:
    # The reference implementations average over 1,000 steps; torch's default of 10 suits runs of 2,000.
    return nn.BatchNorm2d(channels) if batch_norm else nn.Identity()


class _Block(nn.Module):
    """Norm, activation, 3x3 convolution, twice, around a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, first: bool, batch_norm: bool) -> None:
        super().__init__()
        bias = not batch_norm
        self.bn1 = _norm(inputs, batch_norm)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=bias)
        self.bn2 = _norm(outputs, batch_norm)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=bias)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=bias) if inputs != outputs else None
        # The very first block normalizes before it branches: its input is a bare convolution.
        self.shared_activation = first

    def forward(self, x: Tensor) -> Tensor:
        h = F.leaky_relu(self.bn1(x), SLOPE)
        if self.shared_activation:
            x = h
        branch: Tensor = self.conv2(F.leaky_relu(self.bn2(self.conv1(h)), SLOPE))
        skip: Tensor = x if self.shortcut is None else self.shortcut(x)
        return skip + branch


class WideResNet(nn.Module):
    """A pre-activation residual network of three groups with strides 1, 2, 2.

    Args:
        channels: channels of one image; any size from 8x8 up.
        num_classes: number of classes.
        batch_norm: with batch norms; without, convolutions have biases instead.
        depth: number of convolutions along the main path plus the head, ``6 n + 4``.
        widen: factor on the widths 16, 32, 64.
    """

    def __init__(
        self, channels: int, num_classes: int, batch_norm: bool = True, depth: int = 28, widen: int = 2
    ) -> None:
        super().__init__()
        per_group = (depth - 4) // 6
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1, bias=not batch_norm)
        blocks: list[nn.Module] = []
        width = 16
        for group, stride in enumerate((1, 2, 2)):
            outputs = 16 * widen * 2**group
            for i in range(per_group):
                blocks.append(_Block(width, outputs, stride if i == 0 else 1, not blocks, batch_norm))
                width = outputs
        self.blocks = nn.Sequential(*blocks)
        self.bn = _norm(width, batch_norm)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape ``(B, C)``."""
        h = self.blocks(self.conv1(channels_last(x)))
        h = F.leaky_relu(self.bn(h), SLOPE).mean((2, 3))
        logits: Tensor = self.head(h)
        return logits


def init_wide_resnet(model: nn.Module, generator: torch.Generator) -> None:
    """Kaiming normal over the fan-out for convolutions, Xavier normal for the head, biases 0."""
    init_norms(model)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, a=SLOPE, mode="fan_out", generator=generator)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_normal_(module.weight, generator=generator)
        if isinstance(module, nn.Conv2d | nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    blocks = [m for m in model.modules() if isinstance(m, _Block)]
    for block in blocks:
        if isinstance(block.bn1, nn.Identity):
            # Nothing rescales the sum, so each branch adds 1/n of the variance and the whole stays bounded.
            with torch.no_grad():
                block.conv2.weight.div_(math.sqrt(len(blocks)))


@register_model("wrn-28-2", images=True, init=init_wide_resnet)
def wrn_28_2(input_shape: tuple[int, ...], num_classes: int, batch_norm: bool = True) -> WideResNet:
    """The size that the semi-supervised literature uses."""
    return WideResNet(input_shape[0], num_classes, batch_norm)
