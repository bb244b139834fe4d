"""Visits in proportion to weights: batches are full of members that count, as if the pool had been cleaned.

A member with weight w_j is visited in proportion to a_j = max(w_j, floor), and a visit counts

    s_j = min(1, w_j / a_j),    f_j = e · s_j / mean of s over the batch,    e = min(1, max(0, w̄ / FEW − 1)).

So in expectation each member contributes its weight, and the unlabeled term keeps its coefficient whatever the share of
foreign members. A member with weight 0 is still visited now and then at no cost for the others: it contributes nothing
to the loss (f) and to the batch statistics, but the validation loss responds to it.

Where almost no member belongs, with the mean weight w̄ of the pool near ``FEW``, the term fades away: the few members
that still count are mostly mistakes of the prior, and scaled up to full batches they would steer the training.

In the batch statistics a visit counts s_j where w_j ≥ ½ and nothing elsewhere. A loss is divided among its members, but
a variance is sensitive to outliers: one in thirty, fifteen deviations away, makes it eight times as large.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from wrssl.api import BatchWeights, OptionError, VisitRates

CHUNK = 100_000
LIKELY = 0.5  # a member that is more likely foreign than own takes no part in batch statistics
SCARCE = 0.1  # a batch whose members count less than this on average is not scaled up to full size
FEW = 0.01  # a pool with this mean weight has no influence; with twice as much it has all of it


class Visits:
    """How often members are visited, and what a visit counts.

    Args:
        floor: the smallest rate.
    """

    def __init__(self, floor: float) -> None:
        if not 0 < floor <= 1:
            raise OptionError(f"floor must be above 0 and at most 1, but it is {floor}.")
        self.floor = floor
        self.rates: VisitRates | None = None  # a
        self.scale = 1.0  # e

    def follow(self, weights: Callable[[Tensor], Tensor], size: int) -> None:
        """Follow these weights from now on; computes them once for the whole pool."""
        rate = torch.empty(size)  # filled part by part: computing all at once would take twice its memory
        for start in range(0, size, CHUNK):
            index = torch.arange(start, min(start + CHUNK, size))
            rate[start : start + CHUNK] = weights(index)
        self.scale = min(1.0, max(0.0, float(rate.mean()) / FEW - 1))
        version = 0 if self.rates is None else self.rates.version + 1
        self.rates = VisitRates(rate.clamp_(self.floor, 1.0), version)

    def unthinned(self, index: Tensor, values: Tensor) -> Tensor:
        """Values of a batch as they would count if every member were visited equally often."""
        return values if self.rates is None else values / self.rates.rate[index]

    def batch(self, index: Tensor, w: Tensor) -> BatchWeights:
        """Weights, factors f and presence of a batch with weights ``w``; all are ``w`` where visits are equal."""
        if self.rates is None:
            return BatchWeights(w, presence=torch.where(w < LIKELY, 0.0, w) * (self.scale > 0))
        share = (w / self.rates.rate[index]).clamp_(max=1.0)  # s
        factor = self.scale * share / share.mean().clamp_min(SCARCE)
        return BatchWeights(w, factor, torch.where(w < LIKELY, 0.0, share) * (self.scale > 0))
