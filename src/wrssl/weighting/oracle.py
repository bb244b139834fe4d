"""Perfect weights, for comparison: the one weighting that may see the truth."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import BatchWeights, DataError, Pool, Weighting
from wrssl.registry import register_weighting


@register_weighting("oracle")
class Oracle(Weighting):
    """w_j = 1 − is_ood_j.

    Not the same as a hand-cleaned pool: zero weights leave fewer examples in the mean over the batch, which lowers the
    effective coefficient (halves it at 50 %). ``load_scenario(..., clean=True)`` is the hand-cleaned pool.
    """

    summary: ClassVar[str] = "1 for what belongs, 0 for what does not, from the truth: an upper bound"
    wants_truth: ClassVar[bool] = True

    def setup(self, pool: Pool) -> None:
        """Take the truth."""
        if pool.truth is None:
            raise DataError(
                "The oracle needs to know the truth; give the scenario is_ood, or choose another weighting."
            )
        self._weights = 1 - pool.truth.to(torch.float32)

    def batch(self, index: Tensor) -> BatchWeights:
        """1 for ID, 0 for OOD."""
        return BatchWeights(self._weights[index])
