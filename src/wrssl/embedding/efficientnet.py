"""EfficientNet-Lite (Tan and Le, 2019; the Lite variants by Liu, 2020) as a torch module that gives features.

The Lite variants are EfficientNet without squeeze-and-excitation, with ReLU6, and with stem and head of fixed width.
The names of the parameters are those of the published weights, so they load without a translation.

Padding follows TensorFlow's "same": where the stride is 2 and the input even, one row and column more below and to the
right than above and to the left. All sizes that the embedder uses are multiples of 32, so every such input is even and
the padding is constant.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

# repeats, kernel, stride, expansion, channels
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
STEM, FEATURES = 32, 1280
SCALES = {"lite0": (1.0, 1.0), "lite1": (1.0, 1.1), "lite2": (1.1, 1.2)}  # width, depth
MULTIPLE = 32  # of the sides of an input


class EfficientNetLite(nn.Module):
    """Images ``(B, 3, H, W)`` in [−1, 1], sides multiples of 32, to features ``(B, 1280)``.

    Args:
        name: ``"lite0"``, ``"lite1"`` or ``"lite2"``.
    """

    def __init__(self, name: str = "lite0") -> None:
        super().__init__()
        width, depth = SCALES[name]
        self._conv_stem = same_conv(3, STEM, 3, 2)
        self._bn0 = norm(STEM)
        blocks: list[nn.Module] = []
        before = STEM
        for stage, (repeats, kernel, stride, expansion, channels) in enumerate(STAGES):
            after = rounded(channels * width)
            ends = stage in (0, len(STAGES) - 1)  # the Lite variants do not repeat the first and the last stage
            for repeat in range(repeats if ends else math.ceil(depth * repeats)):
                blocks.append(Block(before, after, kernel, stride if repeat == 0 else 1, expansion))
                before = after
        self._blocks = nn.Sequential(*blocks)
        self._conv_head = nn.Conv2d(before, FEATURES, 1, bias=False)
        self._bn1 = norm(FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        """The mean over positions of the last feature map."""
        x = nn.functional.relu6(self._bn0(self._conv_stem(x)))
        x = nn.functional.relu6(self._bn1(self._conv_head(self._blocks(x))))
        features: Tensor = x.mean((2, 3))
        return features

    def load(self, weights: OrderedDict[str, Tensor]) -> EfficientNetLite:
        """Take over published weights; the classifier of the 1,000 ImageNet classes is left out."""
        self.load_state_dict({name: value for name, value in weights.items() if not name.startswith("_fc.")})
        return self.eval()


class Block(nn.Module):
    """Inverted residual: expand (1 × 1), one filter per channel (k × k), project (1 × 1), plus the input if it fits."""

    def __init__(self, before: int, after: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = before * expansion
        if expansion > 1:
            self._expand_conv = nn.Conv2d(before, inner, 1, bias=False)
            self._bn0 = norm(inner)
        self._depthwise_conv = same_conv(inner, inner, kernel, stride, groups=inner)
        self._bn1 = norm(inner)
        self._project_conv = nn.Conv2d(inner, after, 1, bias=False)
        self._bn2 = norm(after)
        self.expands, self.adds = expansion > 1, stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        """Same number of rows and columns, halved with stride 2."""
        y = nn.functional.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = nn.functional.relu6(self._bn1(self._depthwise_conv(y)))
        z: Tensor = self._bn2(self._project_conv(y))
        return x + z if self.adds else z


class PaddedConv(nn.Conv2d):
    """A convolution whose input is padded more below and to the right than above and to the left."""

    def forward(self, x: Tensor) -> Tensor:
        """TensorFlow's "same" for even inputs and stride 2."""
        total = self.kernel_size[0] - 2
        pad = total // 2, total - total // 2
        return super().forward(nn.functional.pad(x, (*pad, *pad)))


def same_conv(before: int, after: int, kernel: int, stride: int, groups: int = 1) -> nn.Conv2d:
    """Without a bias; k × k."""
    if stride == 2:
        return PaddedConv(before, after, kernel, stride, groups=groups, bias=False)
    return nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False)


def norm(channels: int) -> nn.BatchNorm2d:
    """As in the published weights."""
    return nn.BatchNorm2d(channels, eps=1e-3)


def rounded(channels: float, divisor: int = 8) -> int:
    """The nearest multiple of 8 that is not more than a tenth below."""
    nearest = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return nearest if nearest >= 0.9 * channels else nearest + divisor


def as_torch(weights: dict[str, Tensor], name: str) -> EfficientNetLite:
    """The network with these weights, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):  # torch initializes from the global generator
        return EfficientNetLite(name).load(OrderedDict(weights))


def to_onnx(net: EfficientNetLite) -> bytes:
    """The network as the bytes of an ONNX file, images ``x`` to ``rows``; number and sides of the images are free.

    Written node by node, since the network has only five kinds: torch's exporter takes twenty seconds for the same.
    Batch norm is part of the convolution before it: γ (W∗x − μ) / √(σ² + ε) + β = (s W)∗x + (β − s μ) with
    s = γ / √(σ² + ε).
    """
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []
    constants = [numpy_helper.from_array(np.float32(6 * k), f"bound{k}") for k in (0, 1)]

    def add(kind: str, inputs: list[str], **attributes: Any) -> str:
        name = f"{kind}{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def convolve(x: str, conv: nn.Conv2d, bn: nn.BatchNorm2d) -> str:
        assert bn.running_mean is not None
        assert bn.running_var is not None
        scale = bn.weight.double() / (bn.running_var.double() + bn.eps).sqrt()
        weight = (conv.weight.double() * scale.view(-1, 1, 1, 1)).float()
        bias = (bn.bias.double() - bn.running_mean.double() * scale).float()
        names = [f"{kind}{len(nodes)}" for kind in ("weight", "bias")]
        for name, value in zip(names, (weight, bias), strict=True):
            constants.append(numpy_helper.from_array(value.detach().numpy(), name))
        before = (conv.kernel_size[0] - conv.stride[0]) // 2
        after = conv.kernel_size[0] - conv.stride[0] - before
        return add("Conv", [x, *names], strides=conv.stride, group=conv.groups, pads=[before] * 2 + [after] * 2)

    def relu6(x: str) -> str:
        return add("Clip", [x, "bound0", "bound1"])

    x = relu6(convolve("x", net._conv_stem, net._bn0))
    for block in net._blocks:
        assert isinstance(block, Block)
        y = relu6(convolve(x, block._expand_conv, block._bn0)) if block.expands else x
        y = relu6(convolve(y, block._depthwise_conv, block._bn1))
        y = convolve(y, block._project_conv, block._bn2)
        x = add("Add", [x, y]) if block.adds else y
    x = relu6(convolve(x, net._conv_head, net._bn1))
    nodes.append(helper.make_node("Flatten", [add("GlobalAveragePool", [x])], ["rows"]))
    images = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "height", "width"])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", FEATURES])
    graph = helper.make_graph(nodes, "efficientnet-lite", [images], [rows], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data
