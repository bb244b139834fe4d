"""Turn, shear and move images: a matrix per image, and one resampling however many matrices were multiplied.

Places are measured in pixels from the middle of the image, x to the right and y down. A matrix A says where an output
pixel comes from,

    out(p) = in(A · p),      p = (x, y, 1),

so doing first A₁ and then A₂ is out(p) = in(A₁ · A₂ · p): one matrix, the product in the order of the operations.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def affine_matrix(turn: Tensor, shear_x: Tensor, shear_y: Tensor, move_x: Tensor, move_y: Tensor) -> Tensor:
    """The matrices of one operation per image.

        A = [cos φ   a − sin φ   −t_x]
            [b + sin φ   cos φ   −t_y]
            [0             0       1 ]

    Every image has one number other than 0 at most; the matrix then is that of this operation alone.

    Args:
        turn: φ in radians, anticlockwise, any shape.
        shear_x: a; the row at height y slides by a·y.
        shear_y: b; the column at x slides by b·x.
        move_x: t_x, pixels to the right.
        move_y: t_y, pixels down.

    Returns:
        Matrices of the shape ``(*turn.shape, 3, 3)``.
    """
    cos, sin = turn.cos(), turn.sin()
    zero, one = torch.zeros_like(turn), torch.ones_like(turn)
    entries = [cos, shear_x - sin, -move_x, shear_y + sin, cos, -move_y, zero, zero, one]
    return torch.stack(entries, dim=-1).view(*turn.shape, 3, 3)


def resample(x: Tensor, matrices: Tensor) -> Tensor:
    """The images seen through their matrices: bilinear between pixel centres.

    A place outside of the image has the value of the nearest border pixel, so that no new grey value appears.

    Args:
        x: images ``(B, C, H, W)``.
        matrices: A, ``(B, 3, 3)``, in pixels.

    Returns:
        Images of the same shape and type.
    """
    height, width = x.shape[-2:]
    across = torch.arange(width, dtype=x.dtype, device=x.device) + (1 - width) / 2
    down = torch.arange(height, dtype=x.dtype, device=x.device)[:, None] + (1 - height) / 2
    # torch wants places as −1 … 1 over each side, whatever its length. F.affine_grid would make the grid as well, but
    # as a batched product of thin matrices, which costs more than the resampling itself.
    scaled = (matrices[:, :2] * matrices.new_tensor([[2 / width], [2 / height]])).to(x.dtype)
    by_x, by_y, shift = scaled[..., None, None].unbind(2)
    grid = (by_x * across + (by_y * down + shift)).permute(0, 2, 3, 1)
    out = F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
    # A mean of pixels cannot leave their range, but its rounding can.
    return out.clamp(x.amin((1, 2, 3), keepdim=True), x.amax((1, 2, 3), keepdim=True))
