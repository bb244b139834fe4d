"""The modules that stand for a convolution with ReLU and pooling, with or without batch norm; they own no parameter.

Each one decides at every call whether its kernel can compute this pass, and otherwise calls its layers one by one.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad

from wrssl.fast.geometry import Buffers, Geometry
from wrssl.fast.kernel import ConvNormPool, Kernel, Statistics, Wide
from wrssl.norm import PassState, Source, Weighted


def possible(x: Tensor, *parameters: Tensor) -> bool:
    """Whether a kernel can compute with these tensors now."""
    dtype = x.dtype
    return (
        x.device.type == "cpu"  # where it was measured
        and dtype in (torch.float32, torch.float64)
        and all(p.dtype == dtype for p in parameters)
        and len(x) > 0
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()  # they cannot look into a custom function
    )


def statistics_of(norm: Weighted, asked: PassState, x: Tensor, positions: int) -> tuple[Statistics, float]:
    """The statistics that a pass uses in this layer for a batch ``x``, and the effective number of values behind them.

    Args:
        norm: the layer.
        asked: the source that the surrounding context sets, with its weights.
        x: the batch; only its length and type are read.
        positions: values per channel and example.
    """
    if asked.source is Source.BATCH:
        return Statistics(), len(x) * positions
    if asked.counts is not None:
        norm.check_weights(x, asked.counts.w)
        values = asked.counts.values(positions)
        if values:
            return Statistics(asked.counts.shares(x.dtype)), values
    assert norm.running_mean is not None
    assert norm.running_var is not None
    # Clones: derivatives need the current statistics, and a later pass may update the buffers before.
    return Statistics(None, (norm.running_mean.clone(), norm.running_var.clone())), 0.0


class _Block(nn.Module):
    """What the blocks have in common: a kernel for each shape of images, and the parameters as it reads them."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.memory = Buffers()
        self.kernels: dict[tuple[int, ...], Kernel | None] = {}
        self._widened: tuple[Kernel, Tensor, Tensor, Wide] | None = None

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
        """The expanded kernel, made anew only where the parameters have other values than in the last pass.

        Values are compared because nothing else shows every change: fused optimizers do not raise the version of a
        parameter, and neither do changes of its ``.data``.
        """
        last = self._widened
        if last is None or last[0] is not kernel or not (_same(last[1], weight) and _same(last[2], gamma)):
            with torch.no_grad():
                # Without tangents: those of the parameters take part where the block is differentiated.
                values = [forward_ad.unpack_dual(p).primal.detach() for p in (weight, gamma)]
                last = self._widened = (kernel, *(v.clone() for v in values), kernel.widen(*values))
        return last[3]


def _same(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and torch.equal(a, b)


class FusedBlock(_Block):
    """``max_pool2d(relu(norm(conv(x))), 2)`` in one kernel where that is possible, else layer by layer."""

    def __init__(self, conv: nn.Conv2d, norm: Weighted) -> None:
        super().__init__(norm.eps)
        self._layers = conv, norm  # a tuple, so that they are not registered: they have their names elsewhere

    def forward(self, x: Tensor) -> Tensor:
        """The pooled result, (N, C, H/2, W/2)."""
        conv, norm = self._layers
        kernel, asked = self.kernel_for(x, conv), norm.asked()
        weight, gamma = conv.weight, norm.weight
        known = asked.weights is None or asked.counts is not None  # the weights as numbers, if there are any
        if kernel is None or not known or not possible(x, weight, gamma):
            return F.max_pool2d(F.relu(norm(conv(x))), 2)
        statistics, values = statistics_of(norm, asked, x, kernel.geometry.positions)
        wide = self.widen(kernel, weight, gamma)
        moments: list[Tensor] | None = [] if asked.updates and statistics.running is None else None
        y: Tensor = ConvNormPool.apply(x, weight, conv.bias, gamma, norm.bias, kernel, wide, statistics, moments)  # type: ignore[no-untyped-call]
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
        beta = zero if conv.bias is None else conv.bias
        statistics = Statistics(None, (zero, one))
        wide = self.widen(kernel, weight, one)
        y: Tensor = ConvNormPool.apply(x, weight, None, one, beta, kernel, wide, statistics, None)  # type: ignore[no-untyped-call]
        return y


class WindowConv(nn.Module):
    """A convolution whose kernel covers the whole image: one matrix product, and no search for the best algorithm.

    It owns no parameter.
    """

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self._layer = (conv,)  # not registered, as above

    def forward(self, x: Tensor) -> Tensor:
        """(N, C_out, 1, 1) where the kernel covers ``x``, else the output of the layer."""
        (conv,) = self._layer
        if x.dim() != 4 or tuple(x.shape[-2:]) != conv.kernel_size or not possible(x, conv.weight):
            output: Tensor = conv(x)
            return output
        # The blocks give (C, H, W, N) in memory: this order of flattening is a view of it.
        columns = x.permute(1, 2, 3, 0).reshape(-1, len(x)).t()
        return F.linear(columns, conv.weight.flatten(1), conv.bias).view(len(x), -1, 1, 1)
