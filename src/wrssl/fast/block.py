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
from wrssl.fast.dense import Dense
from wrssl.fast.function import ConvNormPool
from wrssl.fast.geometry import Geometry
from wrssl.fast.kernel import Kernel, Statistics
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
    """``relu(norm(layer(x)))``, with ``max_pool2d(…, 2)`` after it or without, in one go where that is possible.

    Args:
        layer: a convolution or a Linear layer.
        norm: its batch norm.
        pools: whether pooling follows. Without it a convolution is fused where its kernel covers the image.
    """

    def __init__(self, layer: nn.Conv2d | nn.Linear, norm: Weighted, pools: bool) -> None:
        super().__init__()
        self._layers = layer, norm  # not registered: they have their names elsewhere, and one name is enough
        self.pools = pools
        self.buffers = Buffers()
        self.kernels: dict[tuple[int, ...], Kernel | None] = {}
        self.widened: tuple[Any, ...] = ()

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H/2, W/2) with pooling, else (N, C) or (N, C, 1, 1)."""
        layer, norm = self._layers
        kernel, asked = self._kernel(x), norm.asked()
        if kernel is None or not _possible(x, layer.weight, norm.weight) or not _known(asked):
            h = F.relu(norm(layer(x)))
            return F.max_pool2d(h, 2) if self.pools else h
        statistics, values = self._statistics(x, kernel, asked)
        parameters = [layer.weight, layer.bias, norm.weight, norm.bias]
        wide = self._widen(kernel, parameters[0], parameters[2])
        if _constant.get():
            parameters = [None if p is None else p.detach() for p in parameters]
        y: Tensor
        y, mean, variance = ConvNormPool.apply(x, *parameters, kernel, wide, statistics)
        if asked.updates and statistics.running is None:
            norm.move_running(mean, variance * (values / (values - 1)), 1)
        return y

    def _kernel(self, x: Tensor) -> Kernel | None:
        """The kernel for inputs of this shape; None where it does not fit."""
        shape = tuple(x.shape[1:])
        if shape not in self.kernels:
            geometry = _geometry(self._layers[0], shape, self.pools)
            fits = geometry is not None and geometry.fits
            self.kernels[shape] = Kernel(geometry, self._layers[1].eps, self.buffers) if fits else None  # type: ignore[arg-type]
        return self.kernels[shape] if len(x) > 1 else None

    def _statistics(self, x: Tensor, kernel: Kernel, asked: PassState) -> tuple[Statistics, float]:
        """What the context of this pass asks of the batch norm, and the effective number of values behind it."""
        norm, geometry = self._layers[1], kernel.geometry
        positions = geometry.planes * math.prod(geometry.result[1:])
        if asked.source is Source.BATCH:
            return Statistics(), len(x) * positions
        if asked.counts is not None:
            norm.check_weights(x, asked.counts.w)
            values = asked.counts.values(positions)
            if values:
                return Statistics(asked.counts.w.to(x.dtype) / asked.counts.total), values
        assert norm.running_mean is not None
        assert norm.running_var is not None
        # Clones: derivatives need the statistics of now, and a later pass may move the buffers before.
        return Statistics(None, (norm.running_mean.clone(), norm.running_var.clone())), 0.0

    def _widen(self, kernel: Kernel, weight: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
        """The expanded kernel, made once for all passes of a step: until a parameter is written to or replaced."""
        key = (weight, weight._version, gamma, gamma._version, kernel)
        if len(self.widened) != 2 or not _same(self.widened[0], key):
            with torch.no_grad():
                self.widened = (key, kernel.widen(weight.detach(), gamma.detach()))
        wide: tuple[Tensor, Tensor] = self.widened[1]
        return wide


def _geometry(layer: nn.Conv2d | nn.Linear, shape: tuple[int, ...], pools: bool) -> Geometry | Dense | None:
    """How to compute this layer for examples of this shape; None where the layers themselves have to run."""
    if isinstance(layer, nn.Linear):
        fits = shape == (layer.in_features,)
        return Dense(layer.in_features, layer.out_features, shape, (layer.out_features,)) if fits else None
    if len(shape) != 3 or shape[0] != layer.in_channels:
        return None
    if pools:
        return Geometry(layer.in_channels, layer.out_channels, layer.kernel_size, layer.padding, *shape[1:])  # type: ignore[arg-type]
    if shape[1:] == layer.kernel_size and layer.padding == (0, 0):
        return Dense(math.prod(shape), layer.out_channels, shape, (layer.out_channels, 1, 1))
    return None


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


def _same(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    return all(a is b if isinstance(a, Tensor) else a == b for a, b in zip(old, new, strict=True))
