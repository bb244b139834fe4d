"""The modules that stand for a convolution with ReLU and pooling, with or without batch norm; they own no parameter."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wrssl.fast.buffers import Buffers
from wrssl.fast.conditions import as_asked, known, possible
from wrssl.fast.function import ConvNormPool
from wrssl.fast.geometry import Geometry
from wrssl.fast.kernel import Kernel, Wide
from wrssl.fast.statistics import Statistics, statistics_of
from wrssl.norm.layers import Weighted


class _Block(nn.Module):
    """What the blocks have in common: a kernel for each shape of images, and the parameters as it reads them."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.memory = Buffers()
        self.kernels: dict[tuple[int, ...], Kernel | None] = {}
        self.widened: tuple[Any, ...] = ()

    def kernel_for(self, x: Tensor, conv: nn.Conv2d) -> Kernel | None:
        """The kernel for images of this shape; None where it does not fit."""
        shape = x.shape[1:]
        if shape not in self.kernels:
            self.kernels[shape] = None
            if len(shape) == 3 and shape[0] == conv.in_channels:
                geometry = Geometry(shape[0], conv.out_channels, conv.kernel_size, conv.padding, *shape[1:])  # type: ignore[arg-type]
                self.kernels[shape] = Kernel(geometry, self.eps, self.memory) if geometry.fits else None
        return self.kernels[shape]

    def widen(self, kernel: Kernel, weight: Tensor, gamma: Tensor) -> Wide:
        """The expanded kernel, made once for all passes of a step: until a parameter is written to or replaced."""
        key = (kernel, weight, weight._version, gamma, gamma._version)
        if not self.widened or not all(map(_same, self.widened[0], key)):
            with torch.no_grad():
                self.widened = (key, kernel.widen(weight.detach(), gamma.detach()))
        wide: Wide = self.widened[1]
        return wide


class FusedBlock(_Block):
    """``max_pool2d(relu(norm(conv(x))), 2)`` in one go where that is possible, else layer by layer."""

    def __init__(self, conv: nn.Conv2d, norm: Weighted) -> None:
        super().__init__(norm.eps)
        self._layers = conv, norm  # not registered: they have their names elsewhere, and one name is enough

    def forward(self, x: Tensor) -> Tensor:
        """The pooled result, (N, C, H/2, W/2)."""
        conv, norm = self._layers
        kernel, asked = self.kernel_for(x, conv), norm.asked()
        weight, gamma = conv.weight, norm.weight
        if kernel is None or not known(asked) or not possible(x, weight, gamma):
            return F.max_pool2d(F.relu(norm(conv(x))), 2)
        statistics, values = statistics_of(norm, asked, x, kernel.geometry.positions)
        wide = self.widen(kernel, weight, gamma)
        parameters = as_asked([weight, conv.bias, gamma, norm.bias])
        moments: list[Tensor] | None = [] if asked.updates and statistics.running is None else None
        y: Tensor = ConvNormPool.apply(x, *parameters, kernel, wide, statistics, moments)  # type: ignore[no-untyped-call]
        if moments:
            norm.move_running(moments[0], moments[1].mul_(values / (values - 1)), 1)
        return y


class BareBlock(_Block):
    """``max_pool2d(relu(conv(x)), 2)``: a block whose constant statistics are mean 0 and variance 1.

    With γ = 1 and β the bias of the convolution nothing is rounded twice: the largest of four numbers plus the bias is
    the largest of the four sums.
    """

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__(eps=0.0)
        self._layer = (conv,)  # not registered, as above
        self.constants: dict[torch.dtype, tuple[Tensor, Tensor]] = {}

    def forward(self, x: Tensor) -> Tensor:
        """The pooled result, (N, C, H/2, W/2)."""
        (conv,) = self._layer
        kernel, weight = self.kernel_for(x, conv), conv.weight
        if kernel is None or not possible(x, weight):
            return F.max_pool2d(F.relu(conv(x)), 2)
        if x.dtype not in self.constants:
            self.constants[x.dtype] = x.new_zeros(len(weight)), x.new_ones(len(weight))
        zero, one = self.constants[x.dtype]
        parameters = as_asked([weight, None, one, zero if conv.bias is None else conv.bias])
        statistics = Statistics(None, (zero, one))
        wide = self.widen(kernel, weight, one)
        y: Tensor = ConvNormPool.apply(x, *parameters, kernel, wide, statistics, None)  # type: ignore[no-untyped-call]
        return y


def _same(a: object, b: object) -> bool:
    return a is b or (isinstance(a, int) and a == b)
