"""The loops of a block as tensor operations, where numba is not installed: several passes each, the same numbers.

Everything here has examples innermost: z is (4·C, M), with planes ordered (dx, dy) and M = positions·N.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.fast.geometry import Geometry

_masked = torch.ops.aten.threshold_backward.default  # (g, x, 0): g where x > 0, else 0


def gather(geometry: Geometry, image: Tensor, weight: Tensor, a: Tensor) -> Tensor:
    """The windows of the padded images (C, H, W, N) into A, except its last row; returns the mean of each row."""
    windows = geometry.windows(image)
    a[:-1].view(windows.shape).copy_(windows)
    pixels = torch.mv(image.view(-1, weight.shape[0]), weight).view(*image.shape[:-1], 1)
    return geometry.windows(pixels).mean((3, 4, 5)).view(-1) / weight.shape[0]


def scatter(geometry: Geometry, a: Tensor, n: int) -> Tensor:
    """The transpose of ``gather``: every entry of A, without its last row, added to the pixel that it was read from."""
    (rows, columns), (down, right), (height, width) = geometry.window, geometry.pooled, geometry.padded
    a = a.view(geometry.channels, rows, columns, down, right, n)
    # One row and column to spare, so that pixels pair up where the window is odd.
    out = a.new_zeros(geometry.channels, height // 2 + 1, 2, width // 2 + 1, 2, n)
    for y in range(0, rows, 2):
        for x in range(0, columns, 2):
            # Four neighbours of a window at a time: those of all windows are apart.
            piece = a[:, y : y + 2, x : x + 2].permute(0, 3, 1, 4, 2, 5)
            h, w = piece.shape[2], piece.shape[4]
            out[:, y // 2 : y // 2 + down, :h, x // 2 : x // 2 + right, :w].add_(piece)
    whole = out.view(geometry.channels, height // 2 * 2 + 2, width // 2 * 2 + 2, n)
    return whole[:, :height, :width]


def peak(z: Tensor, weight: Tensor, top: Tensor) -> Tensor:
    """The maximum of the four planes into ``top`` (C, M); returns Σ weight z² per channel."""
    q = top.shape[0]
    torch.maximum(*_rows(z), out=top)
    weighted = (z * z).view(-1, weight.shape[0]) @ weight
    return weighted.view(4, q, -1).sum((0, 2))


def rectified(top: Tensor, slope: Tensor, level: Tensor) -> Tensor:
    """``relu(slope · top + level)``, two numbers per channel."""
    return torch.addcmul(level.unsqueeze(1), top, slope.unsqueeze(1)).relu_()


def sums(grad: Tensor, y: Tensor, top: Tensor) -> tuple[Tensor, Tensor]:
    """Σ g and Σ g·top per channel, g being ``grad`` where y > 0."""
    g = _masked(grad, y, 0)
    return g.sum(1), (g * top).sum(1)


def placed(
    grad: Tensor, y: Tensor, z: Tensor, weight: Tensor, scale: Tensor, slope: Tensor, level: Tensor, dz: Tensor
) -> None:
    """Put scale · g into the plane of the maximum, minus weight (slope · z + level) on all of them, into ``dz``."""
    q = y.shape[0]
    g = _masked(grad, y, 0) * scale.unsqueeze(1)
    upper, lower = _rows(z)
    # To the second row where that is strictly larger, else to the first, and likewise to one of two columns.
    below = _masked(g, lower - upper, 0)
    rows = torch.cat([g - below, below])
    right = _masked(rows, z[2 * q :] - z[: 2 * q], 0)
    torch.cat([rows - right, right], out=dz)
    slope, level = (t.repeat(4).unsqueeze(1) for t in (slope, level))
    common = torch.addcmul(level, z, slope)
    dz.sub_(common.view(-1, weight.shape[0]).mul_(weight).view_as(dz))


def slopes(z: Tensor, dz: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Σ weight ż and Σ weight z ż per channel, for tangents ``dz`` of z."""
    counted = (dz.view(-1, weight.shape[0]) * weight).view(4, -1, z.shape[1])
    return counted.sum((0, 2)), (counted * z.view_as(counted)).sum((0, 2))


def followed(
    z: Tensor, dz: Tensor, shift: Tensor, scale: Tensor, slope: Tensor, level: Tensor, top: Tensor, y: Tensor
) -> Tensor:
    """``scale · (ṗ − shift) + slope · top + level`` where y > 0, else 0; ṗ is the tangent of the maximum."""
    pairs = _follow(torch.maximum(*z.chunk(2)), _follow(z, dz))
    moved = (pairs - shift.unsqueeze(1)) * scale.unsqueeze(1) + top * slope.unsqueeze(1) + level.unsqueeze(1)
    out: Tensor = _masked(moved, y, 0)
    return out


def _follow(values: Tensor, tangents: Tensor) -> Tensor:
    """The tangent of ``maximum(first half, second half)``."""
    (first, second), (one, other) = values.chunk(2), tangents.chunk(2)
    gain: Tensor = _masked(other - one, second - first, 0)
    return gain.add_(one)


def _rows(z: Tensor) -> tuple[Tensor, Tensor]:
    """The maxima of the upper and of the lower pairs."""
    upper, lower = torch.maximum(*z.chunk(2)).chunk(2)
    return upper, lower
