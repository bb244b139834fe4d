"""No weighting: plain SSL."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import BatchWeights, Weighting
from wrssl.registry import register_weighting


@register_weighting("none")
class NoWeighting(Weighting):
    """w_j = 1 for every member of the pool."""

    summary: ClassVar[str] = "every pool member counts fully: plain SSL"
    uniform: ClassVar[bool] = True

    def batch(self, index: Tensor) -> BatchWeights:
        """Ones."""
        return BatchWeights(torch.ones(len(index), device=index.device))
