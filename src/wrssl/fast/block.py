"""The modules that stand for the layers of a block; they own no parameter and hold the layers themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wrssl.fast.buffers import Buffers
from wrssl.fast.function import ConvNormPool
from wrssl.fast.geometry import Geometry
from wrssl.fast.kernel import Kernel, Statistics, Wide
from wrssl.norm import Source
from wrssl.norm.layers import Weighted
from wrssl.norm.policies import PassState

_constant: ContextVar[bool] = ContextVar("constant_parameters", default=False)


@contextmanager
def constant_parameters() -> Iterator[None]:
    """Within this context blocks treat their parameters as constants, for passes that differentiate the input only.

    Autograd leaves out gradients nobody asked for in its own layers, but a custom function is never told; so a search
    for an adversarial input would pay for the gradients of all kernels and throw them away.
    """
    token = _constant.set(True)
    try:
        yield
    finally:
        _constant.reset(token)


class FusedBlock(nn.Module):
    """``max_pool2d(relu(norm(conv(x))), 2)`` in one go where that is possible, else layer by layer."""

    def __init__(self, conv: nn.Conv2d, norm: Weighted) -> None:
        super().__init__()
        self._layers = conv, norm  # not registered: they have their names elsewhere, and one name is enough
        self.memory = Buffers()
        self.kernels: dict[tuple[int, ...], Kernel | None] = {}
        self.widened: tuple[Any, ...] = ()

    def forward(self, x: Tensor) -> Tensor:
        """The pooled result, (N, C, H/2, W/2)."""
        conv, norm = self._layers
        kernel, asked = self._kernel(x), norm.asked()
        parameters = weight, _, gamma, _ = [conv.weight, conv.bias, norm.weight, norm.bias]
        if kernel is None or not _possible(x, weight, gamma) or not _known(asked):
            return F.max_pool2d(F.relu(norm(conv(x))), 2)
        statistics, values = self._statistics(x, kernel, asked)
        wide = self._widen(kernel, weight, gamma)
        if _constant.get():
            parameters = [None if p is None else p.detach() for p in parameters]
        moments: list[Tensor] | None = [] if asked.updates and statistics.running is None else None
        y: Tensor = ConvNormPool.apply(x, *parameters, kernel, wide, statistics, moments)  # type: ignore[no-untyped-call]
        if moments:
            norm.move_running(moments[0], moments[1].mul_(values / (values - 1)), 1)
        return y

    def _kernel(self, x: Tensor) -> Kernel | None:
        """The kernel for images of this shape; None where it does not fit."""
        shape = x.shape[1:]
        if shape not in self.kernels:
            conv, norm = self._layers
            self.kernels[shape] = None
            if len(shape) == 3 and shape[0] == conv.in_channels:
                geometry = Geometry(shape[0], conv.out_channels, conv.kernel_size, conv.padding, *shape[1:])  # type: ignore[arg-type]
                self.kernels[shape] = Kernel(geometry, norm.eps, self.memory) if geometry.fits else None
        return self.kernels[shape] if len(x) else None

    def _statistics(self, x: Tensor, kernel: Kernel, asked: PassState) -> tuple[Statistics, float]:
        """What the context of this pass asks of the batch norm, and the effective number of values behind it."""
        positions = kernel.geometry.positions
        if asked.source is Source.BATCH:
            return Statistics(), len(x) * positions
        norm = self._layers[1]
        if asked.counts is not None:
            norm.check_weights(x, asked.counts.w)
            values = asked.counts.values(positions)
            if values:
                return Statistics(asked.counts.w.to(x.dtype) / asked.counts.total), values
        assert norm.running_mean is not None
        assert norm.running_var is not None
        # Clones: derivatives need the statistics of now, and a later pass may move the buffers before.
        return Statistics(None, (norm.running_mean.clone(), norm.running_var.clone())), 0.0

    def _widen(self, kernel: Kernel, weight: Tensor, gamma: Tensor) -> Wide:
        """The expanded kernel, made once for all passes of a step: until a parameter is written to or replaced."""
        key = (kernel, weight, weight._version, gamma, gamma._version)
        if not self.widened or not all(map(_same, self.widened[0], key)):
            with torch.no_grad():
                self.widened = (key, kernel.widen(weight.detach(), gamma.detach()))
        wide: Wide = self.widened[1]
        return wide


class WindowConv(nn.Module):
    """A convolution whose kernel covers the whole image: one matrix product, and no search for the best algorithm."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self._layer = (conv,)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C_out, 1, 1) where the kernel covers ``x``, else what the layer gives."""
        (conv,) = self._layer
        if x.dim() != 4 or tuple(x.shape[-2:]) != conv.kernel_size or not _possible(x, conv.weight):
            output: Tensor = conv(x)
            return output
        # The blocks give (C, H, W, N) in memory: this order of flattening is a view of it.
        columns = x.permute(1, 2, 3, 0).reshape(-1, len(x)).t()
        return F.linear(columns, conv.weight.flatten(1), conv.bias).view(len(x), -1, 1, 1)


def _known(asked: PassState) -> bool:
    """Whether the host knows the weights, if there are any."""
    return asked.weights is None or asked.counts is not None


def _possible(x: Tensor, *parameters: Tensor) -> bool:
    return (
        x.device.type == "cpu"  # where it was measured
        and x.dtype in (torch.float32, torch.float64)
        and all(p.dtype == x.dtype for p in parameters)
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()  # they cannot look into a custom function
    )


def _same(a: object, b: object) -> bool:
    return a is b or (isinstance(a, int) and a == b)
