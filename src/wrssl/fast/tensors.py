"""The loops of a block as tensor operations, where numba is not installed: several passes each, the same numbers.

Everything here has examples innermost: z is (down, 4·C, right·N), with planes ordered (dx, dy); what is pooled is
(C, M), M = down·right·N.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.fast.geometry import Geometry

_masked = torch.ops.aten.threshold_backward.default  # (g, x, 0): g where x > 0, else 0


def gather(geometry: Geometry, image: Tensor, weight: Tensor, a: Tensor, average: Tensor) -> Tensor:
    """The neighbours of all pooled columns of the padded images (C, H, W, N) into A.

    Returns the mean of the product for a kernel whose planes have the mean ``average``; ``weight`` counts the examples,
    with the sum N.
    """
    a.copy_(geometry.neighbours(image))
    counted = (a.view(-1, weight.shape[0]) @ weight).view(*geometry.line, 1)
    return torch.mv(average, geometry.windows(counted).mean((0, 2)) / weight.shape[0])


def scatter(geometry: Geometry, a: Tensor, n: int) -> Tensor:
    """The transpose of ``gather``, from all A_y: every entry added to the pixel that it was read from."""
    (rows, columns), (down, right), (height, width) = geometry.window, geometry.pooled, geometry.padded
    a = a.view(down, rows, geometry.channels, columns, right, n).permute(2, 1, 3, 0, 4, 5)
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


def finish(
    z: Tensor, mean: Tensor, weight: Tensor, size: Tensor, beta: Tensor, eps: float, given: Tensor | None, top: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The maximum of the four planes of z − mean into ``top`` (C, M), normalised and rectified.

    Returns y = relu(size/ς · top + beta), σ² (the mean of weight · (z − mean)², or what is given), 1/ς = 1/√(σ² + eps).
    """
    q, m = top.shape
    z = _planes(z) - mean.repeat(4).unsqueeze(1)
    torch.maximum(*_rows(z), out=top)
    if given is None:
        squares = (z * z).view(-1, weight.shape[0]) @ weight
        given = squares.view(4, q, -1).sum((0, 2)) / (4 * m)
    inverse = (given + eps).rsqrt()
    y = torch.addcmul(beta.detach().unsqueeze(1), top, (size * inverse).unsqueeze(1)).relu_()
    return y, given, inverse


def undo(
    grad: Tensor,
    y: Tensor,
    z: Tensor,
    mean: Tensor,
    top: Tensor,
    weight: Tensor,
    size: Tensor,
    inverse: Tensor,
    dz: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradient of z into ``dz``; returns G1 = Σ g and G2 = Σ g · top/ς per channel, g being ``grad`` where y > 0.

    The plane of the maximum gets size/ς · g; all of them pay weight · size/ς (G1 + G2 · (z − mean)/ς) / (4 M) for the
    statistics.
    """
    q, m = y.shape
    g, scale = _masked(grad, y, 0), size * inverse
    g1, g2 = g.sum(1), (g * top).sum(1).mul_(inverse)
    g, z = g * scale.unsqueeze(1), _planes(z) - mean.repeat(4).unsqueeze(1)
    upper, lower = _rows(z)
    # To the second row where that is strictly larger, else to the first, and likewise to one of two columns.
    below = _masked(g, lower - upper, 0)
    rows = torch.cat([g - below, below])
    right = _masked(rows, z[2 * q :] - z[: 2 * q], 0)
    placed = torch.cat([rows - right, right])
    slope, level = ((t / (4 * m)).repeat(4).unsqueeze(1) for t in (scale * inverse * g2, scale * g1))
    common = torch.addcmul(level, z, slope).view(-1, weight.shape[0]).mul_(weight)
    placed.sub_(common.view_as(placed))
    dz.copy_(placed.view(4 * q, len(dz), -1).transpose(0, 1))
    return g1, g2


def slopes(z: Tensor, mean: Tensor, dz: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Σ weight ż and Σ weight (z − mean) ż per channel, for tangents ``dz`` of z."""
    z, dz = _planes(z) - mean.repeat(4).unsqueeze(1), _planes(dz)
    counted = (dz.view(-1, weight.shape[0]) * weight).view(4, -1, z.shape[1])
    return counted.sum((0, 2)), (counted * z.view_as(counted)).sum((0, 2))


def followed(
    z: Tensor, dz: Tensor, shift: Tensor, scale: Tensor, slope: Tensor, level: Tensor, top: Tensor, y: Tensor
) -> Tensor:
    """``scale · (ṗ − shift) + slope · top + level`` where y > 0, else 0; ṗ is the tangent of the maximum."""
    z, dz = _planes(z), _planes(dz)
    pairs = _follow(torch.maximum(*z.chunk(2)), _follow(z, dz))
    moved = (pairs - shift.unsqueeze(1)) * scale.unsqueeze(1) + top * slope.unsqueeze(1) + level.unsqueeze(1)
    out: Tensor = _masked(moved, y, 0)
    return out


def _follow(values: Tensor, tangents: Tensor) -> Tensor:
    """The tangent of ``maximum(first half, second half)``."""
    (first, second), (one, other) = values.chunk(2), tangents.chunk(2)
    gain: Tensor = _masked(other - one, second - first, 0)
    return gain.add_(one)


def _planes(z: Tensor) -> Tensor:
    """Z as (4·C, M)."""
    return z.transpose(0, 1).reshape(z.shape[1], -1)


def _rows(z: Tensor) -> tuple[Tensor, Tensor]:
    """The maxima of the upper and of the lower pairs."""
    upper, lower = torch.maximum(*z.chunk(2)).chunk(2)
    return upper, lower
