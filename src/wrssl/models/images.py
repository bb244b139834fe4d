"""What the networks for images share: resizing to a fixed size, and the order of an image's values in memory."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class FitSize(nn.Module):
    """Bilinear resize to a square; images that have this size already pass unchanged.

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


def channels_last(x: Tensor) -> Tensor:
    """The same images (N, C, H, W) with the channels innermost in memory where that is faster, which is on a CPU.

    Its convolutions and batch norms then need no reordered copies of their own, and return their results in this order.
    Flattening first, since torch regards images of one channel as ordered in either way, and would leave them as they
    are.
    """
    if x.device.type != "cpu":
        return x
    n, channels, height, width = x.shape
    return x.permute(0, 2, 3, 1).flatten(1).view(n, height, width, channels).permute(0, 3, 1, 2)
