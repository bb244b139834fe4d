"""WR-SSL with one weight per pool member and an L1 term (the paper's variant without clusters)."""

from __future__ import annotations

from typing import ClassVar

import torch

from wrssl.api import Pool
from wrssl.registry import register_weighting
from wrssl.weighting.bilevel import BilevelWeighting


@register_weighting("wr-instance")
class InstanceWeighting(BilevelWeighting):
    """Algorithm 2 with w in [0, 1]^M, all 1 at the start, and λ‖w‖₁ by a proximal step.

    Each member is visited a few times only (about 4 in 2,000 steps of 100 from a pool of 50,000), so single weights are
    noisy; ``wr-cluster`` shares them.
    """

    summary: ClassVar[str] = "the paper's WR-SSL with a weight per pool member and L1"

    def setup(self, pool: Pool) -> None:
        """Every member starts with weight 1."""
        self.table = torch.ones(pool.size)
