"""The modules that stand for the layers of a block; they own no parameter and hold the layers themselves."""

from __future__ import annotations

import math
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
from wrssl.fast.kernel import Kernel, Statistics
from wrssl.norm import Source
from wrssl.norm.layers import Weighted
from wrssl.norm.moments import MIN_TOTAL

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
        self.buffers = Buffers()
        self.kernels: dict[tuple[int, int], Kernel] = {}
        self.widened: tuple[Any, ...] = ()

    def forward(self, x: Tensor) -> Tensor:
        """The pooled result, (N, C, H/2, W/2)."""
        conv, norm = self._layers
        kernel = self._kernel(x)
        if kernel is None or not _possible(x, conv.weight, norm.weight):
            return F.max_pool2d(F.relu(norm(conv(x))), 2)
        positions = 4 * kernel.geometry.pooled[0] * kernel.geometry.pooled[1]
        statistics, updates = self._statistics(x, positions)
        parameters = [conv.weight, conv.bias, norm.weight, norm.bias]
        wide = self._widen(kernel, parameters[0], parameters[2])
        if _constant.get():
            parameters = [None if p is None else p.detach() for p in parameters]
        y: Tensor
        y, mean, variance = ConvNormPool.apply(x, *parameters, kernel, wide, statistics)
        if updates:
            self._move_running(mean, variance, statistics, len(x) * positions)
        return y

    def _kernel(self, x: Tensor) -> Kernel | None:
        """The kernel for images of this size; None where the size does not fit."""
        conv, norm = self._layers
        size: tuple[int, int] = tuple(x.shape[-2:])
        if x.dim() != 4 or len(x) == 0:
            return None
        if size not in self.kernels:
            geometry = Geometry(conv.in_channels, conv.out_channels, conv.kernel_size, conv.padding, *size)  # type: ignore[arg-type]
            self.kernels[size] = Kernel(geometry, norm.eps, self.buffers)
        kernel = self.kernels[size]
        return kernel if kernel.geometry.fits and x.shape[1] == conv.in_channels else None

    def _statistics(self, x: Tensor, positions: int) -> tuple[Statistics, bool]:
        """What the context of this pass asks of the batch norm, and whether its buffers move."""
        norm = self._layers[1]
        asked = norm.asked()
        if asked.source is Source.BATCH:
            return Statistics(None, None, None), asked.updates
        assert norm.running_mean is not None
        assert norm.running_var is not None
        # Clones: derivatives need the statistics of now, and a later pass may move the buffers before.
        running = norm.running_mean.clone(), norm.running_var.clone()
        if asked.weights is None:
            return Statistics(None, None, running, constant=True), False
        norm.check_weights(x, asked.weights)
        w = asked.weights.to(x.dtype)
        total = w.sum()
        usable = total >= MIN_TOTAL
        return Statistics(w / torch.where(usable, total, math.inf), usable, running), asked.updates

    def _move_running(self, mean: Tensor, variance: Tensor, statistics: Statistics, values: int) -> None:
        norm, share = self._layers[1], statistics.share
        # n of the module docstring of wrssl.norm; shares of zero, which stand for no statistic, leave the variance.
        inverse_n = 1 / values if share is None else share.dot(share) * (len(share) / values)
        norm.move_running(mean, variance / (1 - inverse_n), 1 if statistics.usable is None else statistics.usable)

    def _widen(self, kernel: Kernel, weight: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
        """The expanded kernel, made once for all passes of a step: until a parameter is written to or replaced."""
        key = (weight, weight._version, gamma, gamma._version, kernel)
        if len(self.widened) != 2 or not _same(self.widened[0], key):
            with torch.no_grad():
                self.widened = (key, kernel.widen(weight.detach(), gamma.detach()))
        wide: tuple[Tensor, Tensor] = self.widened[1]
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


def _possible(x: Tensor, *parameters: Tensor) -> bool:
    return (
        x.device.type == "cpu"  # where it was measured
        and x.dtype in (torch.float32, torch.float64)
        and all(p.dtype == x.dtype for p in parameters)
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()  # they cannot look into a custom function
    )


def _same(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    return all(a is b if isinstance(a, Tensor) else a == b for a, b in zip(old, new, strict=True))
