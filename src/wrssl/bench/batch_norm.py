"""Weighted batch norm over torch's, forward and backward."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wrssl.bench.effort import Effort
from wrssl.bench.timing import Action, Figure, Pairs, geometric_mean, interleave, quartile_range
from wrssl.norm import WeightedBatchNorm2d, sample_weights

SHAPES = ((6, 28, 28), (16, 10, 10), (32, 32, 32), (64, 16, 16))  # (C, H, W): LeNet's two, and two of a residual net


def weighted_over_torch(effort: Effort) -> Figure:
    """The geometric mean over the shapes; the i-th pairs of all shapes together give one value of the spread."""
    pairs = [_pairs(shape, effort) for shape in SHAPES]
    rounds = [geometric_mean(values) for values in zip(*(p.ratios() for p in pairs), strict=True)]
    return Figure(geometric_mean([p.ratio() for p in pairs]), quartile_range(rounds), {"pairs": len(rounds)})


def _pairs(shape: tuple[int, int, int], effort: Effort) -> Pairs:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(effort.batch, *shape, generator=generator).requires_grad_()
    slope = torch.randn(effort.batch, *shape, generator=generator)
    w = torch.rand(effort.batch, generator=generator)
    weighted, plain = WeightedBatchNorm2d(shape[0]), nn.BatchNorm2d(shape[0])
    backward = _both_ways(weighted, x, slope)

    def under_weights() -> None:
        with sample_weights(weighted, w):
            backward()

    return interleave(under_weights, _both_ways(plain, x, slope), effort.times(40), warmup=effort.warmup)


def _both_ways(layer: nn.BatchNorm2d, x: Tensor, slope: Tensor) -> Action:
    """Forward, then the gradients of the input and of both parameters."""
    return lambda: torch.autograd.grad(layer(x), (x, layer.weight, layer.bias), slope)
