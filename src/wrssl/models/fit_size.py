"""Images of any size, resized to the one that a network is made for."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class FitSize(nn.Module):
    """Bilinear resize to a square; images that have its size pass untouched.

    Args:
        side: height and width of the result.
    """

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, x: Tensor) -> Tensor:
        """``x`` of shape (B, C, side, side)."""
        size = (self.side, self.side)
        if x.shape[-2:] == size:
            return x
        # Without the low-pass filter a large image would lose thin lines to aliasing.
        shrinks = max(x.shape[-2:]) > self.side
        return F.interpolate(x, size=size, mode="bilinear", align_corners=False, antialias=shrinks)
