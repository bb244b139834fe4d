"""Random numbers per example, and the geometric changes of images: turn, shear, move, mirror, cover a square.

Turning, shearing and moving by fractions of a pixel take one matrix per image, and one resampling for any number of
multiplied matrices. Places are measured in pixels from the middle of the image, x to the right and y down. A matrix A
says where an output pixel comes from,

    out(p) = in(A · p),      p = (x, y, 1),

so doing first A₁ and then A₂ is out(p) = in(A₁ · A₂ · p): one matrix, the product in the order of the operations.

Moving by whole pixels and mirroring round nothing: every output pixel is an input pixel. Covering a square is Cutout
(DeVries and Taylor, 2017: "Improved Regularization … with Cutout").
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

MOVE_SHARE = 0.125  # of each side, as far as FixMatch's weak view moves: 4 of 32 pixels
CUTOUT_SHARE = 0.5  # of the shorter side, the largest square, as in FixMatch


def uniform(shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Numbers in [0, 1) from this generator and from nowhere else, on the device of ``like``.

    They are drawn on the generator's device and always in float64, so that a batch's device and number type do not
    influence the result.
    """
    return torch.rand(shape, generator=generator, dtype=torch.float64, device=generator.device).to(like.device)


def whole(bound: int, shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Whole numbers 0 … bound − 1, equally likely, on the device of ``like``."""
    return torch.randint(bound, shape, generator=generator, device=generator.device).to(like.device)


def affine_matrix(turn: Tensor, shear_x: Tensor, shear_y: Tensor, move_x: Tensor, move_y: Tensor) -> Tensor:
    """The matrices of one operation per image.

        A = [cos φ   a − sin φ   −t_x]
            [b + sin φ   cos φ   −t_y]
            [0             0       1 ]

    Every image has at most one number other than 0; the matrix is then that of this operation alone.

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
    """The images seen through their matrices: bilinear between pixel centers.

    A place outside of the image takes the value of the nearest border pixel, so that no new value appears.

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


def reflected(places: Tensor, size: int) -> Tensor:
    """Places beyond an end, counted back from it: −1 ↦ 1 and ``size`` ↦ ``size`` − 2; at most ``size`` − 1 beyond."""
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
    number, far = len(x), [int(MOVE_SHARE * side) for side in x.shape[-2:]]
    down, right = (whole(2 * most + 1, (number,), generator, x) - most for most in far)
    mirror = whole(2, (number,), generator, x).bool() if mirrors else torch.zeros_like(down, dtype=torch.bool)
    return moved(x, down, right, mirror)


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
    largest = int(CUTOUT_SHARE * min(height, width))
    side, row, column = uniform((3, len(x)), generator, x)
    if not largest:  # the numbers are drawn anyway: how many are used does not depend on the size of the images
        return x
    return covered(x, 1 + (largest * side).long(), (height * row).long(), (width * column).long(), value)
