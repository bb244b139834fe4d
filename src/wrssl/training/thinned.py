"""The order in which a pool is visited whose members are not all worth the same number of visits.

Member j owns an interval of length a_j of the line [0, A), A = Σ a_j. An epoch has n = ⌊A⌋ visits, at the points

    (k + u_e) · A/n,   k = 0 … n − 1,

with one random shift u_e per epoch, in a random order. Since a_j ≤ 1 ≤ A/n nobody is visited twice in an epoch, and the
probability of a visit is a_j n/A (systematic sampling). A visit is found by bisection, so a step costs
O(batch · log M), and any step can be resumed from its number alone.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from wrssl.training.order import Order, epoch_shift


class ThinnedOrder(Order):
    """The endless sequence of batches over members that are admitted with given probabilities.

    Args:
        admission: a, in [0, 1], not all zero.
        batch: members per batch; a batch may reach into the next epoch.
        key: which sequence; equal keys and admissions give equal sequences.
    """

    def __init__(self, admission: Tensor, batch: int, key: int) -> None:
        # Running sums in double precision: those of ten million float32 numbers lose the small ones.
        self.ends = np.cumsum(admission.numpy(), dtype=np.float64)
        total = float(self.ends[-1])
        super().__init__(max(1, int(total)), batch, key)  # an order of the visits of an epoch
        self.spacing = total / self.size

    def _at(self, n: np.ndarray) -> np.ndarray:
        place = super()._at(n) + epoch_shift(n // self.size, self.key)
        # The last point may be rounded up to the very end of the line, where nobody lives.
        point = np.minimum(place * self.spacing, np.nextafter(self.ends[-1], 0))
        members: np.ndarray = np.searchsorted(self.ends, point, side="right")
        return members
