"""The order of an image's numbers in memory."""

from __future__ import annotations

from torch import Tensor


def channels_last(x: Tensor) -> Tensor:
    """The same images (N, C, H, W) with the channels innermost in memory where that is faster, which is on a CPU.

    Its convolutions and batch norms then need no copies in an order of their own, and give their results in this one.
    Flattening first, since torch calls images of one channel ordered in either way, and would leave them as they are.
    """
    if x.device.type != "cpu":
        return x
    n, channels, height, width = x.shape
    return x.permute(0, 2, 3, 1).flatten(1).view(n, height, width, channels).permute(0, 3, 1, 2)
