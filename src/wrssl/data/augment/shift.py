"""Move images by whole pixels, and mirror them: every output pixel is an input pixel, nothing is rounded."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.data.augment.draws import whole

SHARE = 0.125  # of each side, as far as FixMatch's weak view moves: 4 of 32 pixels


def reflected(places: Tensor, size: int) -> Tensor:
    """Places beyond an end counted back from it: −1 ↦ 1 and ``size`` ↦ ``size`` − 2; at most ``size`` − 1 beyond."""
    last = size - 1
    return last - (last - places.abs()).abs()


def moved(x: Tensor, down: Tensor, right: Tensor, mirror: Tensor) -> Tensor:
    """Mirror some images left-right, then move each by whole pixels, the gap filled by reflection.

        out[r, c] = y[reflected(r − down), reflected(c − right)],    y[r, c] = x[r, W − 1 − c] or x[r, c]

    Args:
        x: images ``(B, C, H, W)``.
        down: whole numbers ``(B,)`` below H in size.
        right: likewise, below W.
        mirror: which ones are mirrored, bool ``(B,)``.

    Returns:
        Images of the same shape and type.
    """
    height, width = x.shape[-2:]
    rows = reflected(torch.arange(height, device=x.device) - down[:, None], height)
    columns = reflected(torch.arange(width, device=x.device) - right[:, None], width)
    columns = torch.where(mirror[:, None], width - 1 - columns, columns)
    places = (rows[:, :, None] * width + columns[:, None, :]).flatten(1)
    flat = x.flatten(2)
    return flat.gather(2, places[:, None].expand_as(flat)).view(x.shape)


def random_move(x: Tensor, mirrors: bool, generator: torch.Generator) -> Tensor:
    """Each image moved by up to an eighth of each side, and with ``mirrors`` mirrored with probability 1/2."""
    number, far = len(x), [int(SHARE * side) for side in x.shape[-2:]]
    down, right = (whole(2 * most + 1, (number,), generator, x) - most for most in far)
    mirror = whole(2, (number,), generator, x).bool() if mirrors else torch.zeros_like(down, dtype=torch.bool)
    return moved(x, down, right, mirror)
