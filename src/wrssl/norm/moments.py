"""What the weights make of a batch: how much each example counts, the mean and the variance.

``moments``, ``shares`` and ``unbiased`` are tensor operations that autograd knows and that never wait for a device.
``Counts`` are the same sums of the weights as numbers on the host, for kernels and decisions on the CPU. ``Part`` says
how sums over some rows of a batch become sums over all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import mul
from typing import NamedTuple

import torch
from torch import Tensor

MIN_TOTAL = 1e-3  # with 0/1 weights Σw is 0 or at least 1, so this never excludes a real batch
MIN_VALUES = 2 - 1e-4  # two equal weights give n = 2 up to rounding


class Part(NamedTuple):
    """Which rows of a joint batch are in this process, and how sums over them become sums over all rows.

    Args:
        rows: those that are here.
        size: of the joint batch.
        add: the sum of a tensor over all processes, known to autograd: its backward sums the gradients.
    """

    rows: slice
    size: int
    add: Callable[[Tensor], Tensor]


def _alone(x: Tensor) -> Tensor:
    """The sum over the only process."""
    return x


def weighted_moments(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """μ_w and the biased σ²_w per channel of ``x`` (N, C, …) for weights ``w`` (N,)."""
    return moments(x, w / w.sum().clamp_min(torch.finfo(w.dtype).tiny))


def moments(x: Tensor, share: Tensor, add: Callable[[Tensor], Tensor] = _alone) -> tuple[Tensor, Tensor]:
    """Mean and biased variance per channel, where example i counts with ``share[i]`` and the shares sum to one.

    Where ``x`` is part of a batch, its shares sum to one with those of the other parts, and ``add`` sums over these.

    Two passes with a correction instead of E[x²] − μ²: at |mean|/std = 1000, which faraway examples cause, the
    difference of two large float32 numbers would have no correct digit left.
    """
    values = x.flatten(2) if x.dim() > 2 else x.unsqueeze(2)
    share = share.view(-1, 1, 1)
    mean = add((share * values).sum(0).mean(-1))
    centered = values - mean.view(1, -1, 1)
    sums = [(share * values).sum(0).mean(-1) for values in (centered, centered.square())]
    shift, square = add(torch.stack(sums))  # one message for both
    return mean + shift, (square - shift.square()).clamp_min(0)


def shares(w: Tensor, positions: int) -> tuple[Tensor, Tensor]:
    """w_i / Σ w, and whether they make a statistic; where they do not, the shares are zero.

    Both results are tensors, so that the host never waits for a device.
    """
    total = w.sum()
    usable = (total >= MIN_TOTAL) & (positions * total.square() >= MIN_VALUES * w.dot(w))
    return w / torch.where(usable, total, math.inf), usable


def unbiased(variance: Tensor, share: Tensor, positions: int) -> Tensor:
    """σ² n/(n − 1) with 1/n = Σ share² / S; shares of zero, which stand for no statistic, leave it as it is."""
    return variance / (1 - share.dot(share) / positions)


class Counts(NamedTuple):
    """Sums of the weights as numbers; computed once when a context begins, for all layers in it.

    Args:
        w: a copy of the weights.
        lowest: the least weight.
        total: Σ w; NaN if a weight is NaN.
        squares: Σ w².
        heaviest: the index of an example with the largest weight.
        share: w / Σ w, for all layers at once.
    """

    w: Tensor
    lowest: float
    total: float
    squares: float
    heaviest: int
    share: Tensor

    def shares(self, dtype: torch.dtype) -> Tensor:
        """The shares w / Σ w in this type."""
        return self.share if self.share.dtype == dtype else self.w.to(dtype) / (self.total or 1.0)

    def values(self, positions: int) -> float:
        """The effective number of values, n = S (Σ w)² / Σ w²; zero if they make no statistic."""
        if not MIN_TOTAL <= self.total < math.inf:
            return 0.0
        n = positions * self.total * (self.total / self.squares)
        return n if n >= MIN_VALUES else 0.0


def count_weights(w: Tensor) -> Counts | None:
    """The sums of ``w`` as numbers; None where reading them would wait for a device or lose a derivative."""
    if not w.is_cpu or w.requires_grad or torch._C._are_functorch_transforms_active():
        return None
    if w.dim() != 1 or not len(w):
        return None
    # A list: a batch has some hundred weights, and four calls of torch would cost more than four loops over them.
    numbers: list[float] = w.tolist()
    heaviest, total = numbers.index(max(numbers)), float(sum(numbers))
    return Counts(w.clone(), min(numbers), total, float(sum(map(mul, numbers, numbers))), heaviest, w / (total or 1.0))
