"""The weights of a batch as the host knows them, where it can look at them without waiting for a device."""

from __future__ import annotations

import math
from operator import mul
from typing import NamedTuple

import torch
from torch import Tensor

from wrssl.norm.moments import MIN_TOTAL, MIN_VALUES


class Counts(NamedTuple):
    """One look at the weights, when a context begins, serves all layers in it.

    Args:
        w: a copy of the weights.
        lowest: the least weight.
        total: Σ w; NaN if a weight is.
        squares: Σ w².
        heaviest: an example with the largest weight.
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


def look(w: Tensor) -> Counts | None:
    """Look at ``w``; None where that would wait for a device or lose a derivative."""
    if w.device.type != "cpu" or w.requires_grad or torch._C._are_functorch_transforms_active():
        return None
    if w.dim() != 1 or not len(w):
        return None
    # A list: a batch has some hundred weights, and four calls of torch would cost more than four walks along them.
    numbers: list[float] = w.tolist()
    heaviest, total = numbers.index(max(numbers)), float(sum(numbers))
    return Counts(w.clone(), min(numbers), total, float(sum(map(mul, numbers, numbers))), heaviest, w / (total or 1.0))
