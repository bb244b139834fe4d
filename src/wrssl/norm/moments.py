"""What the weights make of a batch: how much each example counts, the mean and the variance."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from wrssl.norm.part import alone

MIN_TOTAL = 1e-3  # with 0/1 weights Σw is at least 1 as soon as anybody counts, so this never cuts into real batches
MIN_VALUES = 2 - 1e-4  # two equal weights give n = 2 up to rounding


def weighted_moments(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """μ_w and the biased σ²_w per channel of ``x`` (N, C, …) for weights ``w`` (N,)."""
    return moments(x, w / w.sum().clamp_min(torch.finfo(w.dtype).tiny))


def moments(x: Tensor, share: Tensor, add: Callable[[Tensor], Tensor] = alone) -> tuple[Tensor, Tensor]:
    """Mean and biased variance per channel, where example i counts with ``share[i]`` and the shares sum to one.

    Where ``x`` is part of a batch, its shares sum to one with those of the other parts, and ``add`` sums over these.

    Two passes with a correction instead of E[x²] − μ²: at |mean|/std = 1000, which is what faraway examples cause, the
    difference of two large float32 numbers would have no correct digit left.
    """
    values = x.flatten(2) if x.dim() > 2 else x.unsqueeze(2)
    share = share.view(-1, 1, 1)
    mean = add((share * values).sum(0).mean(-1))
    centred = values - mean.view(1, -1, 1)
    sums = [(share * values).sum(0).mean(-1) for values in (centred, centred.square())]
    shift, square = add(torch.stack(sums))  # one message for both
    return mean + shift, (square - shift.square()).clamp_min(0)


def shares(w: Tensor, positions: int) -> tuple[Tensor, Tensor]:
    """w_i / Σ w, and whether they make a statistic; where they do not, the shares are zero.

    Both answers are tensors, so that no host waits for a device.
    """
    total = w.sum()
    usable = (total >= MIN_TOTAL) & (positions * total.square() >= MIN_VALUES * w.dot(w))
    return w / torch.where(usable, total, math.inf), usable


def unbiased(variance: Tensor, share: Tensor, positions: int) -> Tensor:
    """σ² n/(n − 1) with 1/n = Σ share² / S; shares of zero, which stand for no statistic, leave it as it is."""
    return variance / (1 - share.dot(share) / positions)
