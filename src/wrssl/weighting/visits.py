"""Visits in proportion to weights: the batch is full of those who count, as if somebody had cleaned the pool.

A member with weight w_j is visited in proportion to a_j = max(w_j, floor) and its visit counts

    s_j = min(1, w_j / a_j),    f_j = e · s_j / mean of s over the batch,    e = min(1, max(0, w̄ / FEW − 1)).

So in expectation each member contributes what its weight says, the unlabelled term keeps its coefficient whatever the
share of foreign members, and a member with weight 0 is still looked at now and then, at no price for the others: it
counts nothing in the loss (f) and in the batch statistics, but the validation loss hears of it.

Where nearly nobody belongs, the mean weight w̄ of the pool near ``FEW``, the term fades away: the few who still count
are mostly mistakes, of the prior or of chance, and blown up to full batches they would steer the training.

In the statistics a visit counts s_j where w_j ≥ ½ and nothing elsewhere. A loss is divided among its members, but a
variance does not forgive: one in thirty, fifteen deviations away, makes it eight times as large.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from wrssl.api import OptionError

CHUNK = 100_000
LIKELY = 0.5  # who is more likely foreign than own takes no part in batch statistics
SCARCE = 0.1  # a batch whose members count less than this on average is not blown up to full size
FEW = 0.01  # a pool with this mean weight has no say; with twice as much it has all of it


class Visits:
    """How often members are visited, and what a visit counts.

    Args:
        floor: the smallest admission.
    """

    def __init__(self, floor: float) -> None:
        if not 0 < floor <= 1:
            raise OptionError(f"floor must be above 0 and at most 1, but it is {floor}.")
        self.floor = floor
        self.admission: Tensor | None = None
        self.say = 1.0  # e

    def deal(self, weights: Callable[[Tensor], Tensor], size: int) -> None:
        """Follow these weights from now on; one look at the whole pool."""
        admission = torch.empty(size)  # filled part by part: the numbers of all members would take twice its memory
        for start in range(0, size, CHUNK):
            index = torch.arange(start, min(start + CHUNK, size))
            admission[start : start + CHUNK] = weights(index)
        self.say = min(1.0, max(0.0, float(admission.mean()) / FEW - 1))
        self.admission = admission.clamp_(self.floor, 1.0)

    def share(self, index: Tensor, w: Tensor) -> Tensor:
        """The s of a batch with weights ``w``."""
        return w if self.admission is None else (w / self.admission[index]).clamp_(max=1.0)

    def unthinned(self, index: Tensor, values: Tensor) -> Tensor:
        """Values of a batch as they would count if everybody were visited alike."""
        return values if self.admission is None else values / self.admission[index]

    def presence(self, index: Tensor, w: Tensor) -> Tensor:
        """What the members of a batch with weights ``w`` count in its statistics."""
        return torch.where(w < LIKELY, 0.0, self.share(index, w)) * (self.say > 0)

    def factors(self, index: Tensor, w: Tensor) -> Tensor:
        """The f of a batch with weights ``w``: the weights themselves where everybody is visited alike."""
        share = self.share(index, w)
        return w if self.admission is None else self.say * share / share.mean().clamp_min(SCARCE)
