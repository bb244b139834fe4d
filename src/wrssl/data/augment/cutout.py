"""Cover a square of each image (DeVries and Taylor, 2017: "Improved Regularization … with Cutout")."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.data.augment.draws import uniform

SHARE = 0.5  # of the shorter side, the largest square, as in FixMatch


def covered(x: Tensor, side: Tensor, row: Tensor, column: Tensor, value: float) -> Tensor:
    """The images with a square of one value; what lies beyond the border is cut off.

    The square holds the rows row − ⌊side/2⌋ … row − ⌊side/2⌋ + side − 1, and the columns likewise.

    Args:
        x: images ``(B, C, H, W)``.
        side: whole numbers ``(B,)``.
        row: of the middle, ``(B,)``.
        column: likewise.
        value: what the square is filled with.
    """
    inside = []
    for middle, size in ((row, x.shape[-2]), (column, x.shape[-1])):
        place = torch.arange(size, device=x.device) - (middle - side // 2)[:, None]
        inside.append((place >= 0) & (place < side[:, None]))
    square = inside[0][:, None, :, None] & inside[1][:, None, None, :]
    return x.masked_fill(square, value)


def random_cutout(x: Tensor, value: float, generator: torch.Generator) -> Tensor:
    """A square in each image: its side uniform in 1 … half the shorter side, its middle uniform over the pixels."""
    height, width = x.shape[-2:]
    largest = int(SHARE * min(height, width))
    side, row, column = uniform((3, len(x)), generator, x)
    if not largest:  # drawn all the same: how many numbers are used does not depend on the size of the images
        return x
    return covered(x, 1 + (largest * side).long(), (height * row).long(), (width * column).long(), value)
