"""The loops of a block compiled by numba: each number is read and written once, where tensor operations take turns.

The same functions as in ``tensors.py``. Every inner loop runs over the N examples of one position, with few arrays in
it, so that the compiler can prove that none overlaps another and uses vector instructions. NaN stays NaN everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from wrssl.fast.geometry import Geometry

# Sums may be reordered, which vector instructions need; NaN and infinity keep their meaning.
_ALLOWED = {"reassoc", "contract", "nsz"}


def _compiled(function: Callable[..., Any]) -> Any:
    options: dict[str, Any] = {"fastmath": _ALLOWED, "error_model": "numpy", "boundscheck": False, "nogil": True}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep the machine code in: it is made anew in every process
        return numba.njit(**options)(function)


@_compiled
def _gather(image: Any, weight: Any, a: Any, mean: Any) -> None:
    channels, rows, columns, down, right, n = a.shape
    total = np.zeros(image.shape[:3], image.dtype)
    for c in range(channels):
        for v in range(image.shape[1]):
            for h in range(image.shape[2]):
                pixel = image[c, v, h]
                one = pixel[0] * 0
                for i in range(n):
                    one += pixel[i] * weight[i]
                total[c, v, h] = one
    for c in range(channels):
        for r in range(rows):
            for s in range(columns):
                whole = total[0, 0, 0] * 0
                for y in range(down):
                    for x in range(right):
                        whole += total[c, 2 * y + r, 2 * x + s]
                mean[(c * rows + r) * columns + s] = whole / (down * right * n)
                for y in range(down):
                    for x in range(right):
                        pixel, part = image[c, 2 * y + r, 2 * x + s], a[c, r, s, y, x]
                        for i in range(n):  # not part[:] = pixel, which is several times slower
                            part[i] = pixel[i]


@_compiled
def _scatter(a: Any, out: Any) -> None:
    channels, rows, columns, down, right, n = a.shape
    _, height, width, _ = out.shape
    for c in range(channels):
        for v in range(height):
            for h in range(width):
                pixel = out[c, v, h]
                for i in range(n):
                    pixel[i] = 0
                for r in range(v % 2, rows, 2):
                    y = (v - r) // 2
                    if y < 0 or y >= down:
                        continue
                    for s in range(h % 2, columns, 2):
                        x = (h - s) // 2
                        if x < 0 or x >= right:
                            continue
                        part = a[c, r, s, y, x]
                        for i in range(n):
                            pixel[i] += part[i]


@_compiled
def _peak(z: Any, weight: Any, top: Any, squares: Any) -> None:
    q, m = top.shape
    n = weight.shape[0]
    for c in range(q):
        z0, z1, z2, z3, best = z[c], z[2 * q + c], z[q + c], z[3 * q + c], top[c]
        total = z0[0] * 0
        for b in range(0, m, n):
            for i in range(n):
                v0, v1, v2, v3 = z0[b + i], z1[b + i], z2[b + i], z3[b + i]
                upper = v0 if v0 >= v1 else v1
                lower = v2 if v2 >= v3 else v3
                best[b + i] = upper if upper >= lower else lower
                total += (v0 * v0 + v1 * v1 + v2 * v2 + v3 * v3) * weight[i]
        squares[c] = total


@_compiled
def _rectified(top: Any, slope: Any, level: Any, y: Any) -> None:
    for c in range(top.shape[0]):
        row, out, s, t = top[c], y[c], slope[c], level[c]
        for j in range(row.shape[0]):
            v = row[j] * s + t
            out[j] = v if v > 0 else v * 0


@_compiled
def _sums(grad: Any, y: Any, top: Any, g1: Any, g2: Any) -> None:
    for c in range(y.shape[0]):
        row, out, best = grad[c], y[c], top[c]
        first = second = row[0] * 0
        for j in range(row.shape[0]):
            v = row[j] if out[j] > 0 else row[j] * 0
            first += v
            second += v * best[j]
        g1[c], g2[c] = first, second


@_compiled
def _larger(a: Any, b: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = a[i] if a[i] >= b[i] else b[i]


@_compiled
def _where_larger(g: Any, a: Any, b: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = g[i] if a[i] > b[i] else g[i] * 0


@_compiled
def _minus(a: Any, b: Any) -> None:
    for i in range(a.shape[0]):
        a[i] -= b[i]


@_compiled
def _corrected(g: Any, z: Any, weight: Any, slope: Any, level: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = g[i] - weight[i] * (slope * z[i] + level)


@_compiled
def _placed(grad: Any, y: Any, z: Any, weight: Any, scale: Any, slope: Any, level: Any, dz: Any) -> None:
    q, m = y.shape
    n = weight.shape[0]
    upper, lower = np.empty(n, z.dtype), np.empty(n, z.dtype)
    above, below = np.empty(n, z.dtype), np.empty(n, z.dtype)
    for c in range(q):
        k, s, t = scale[c], slope[c], level[c]
        for b in range(0, m, n):
            e = b + n
            row, out = grad[c, b:e], y[c, b:e]
            z0, z1, z2, z3 = z[c, b:e], z[2 * q + c, b:e], z[q + c, b:e], z[3 * q + c, b:e]
            for i in range(n):
                upper[i] = row[i] * k if out[i] > 0 else row[i] * 0
            _larger(z0, z1, above)
            _larger(z2, z3, below)
            # To the second row where that is strictly larger, else to the first, and likewise to one of two columns.
            _where_larger(upper, below, above, lower)
            _minus(upper, lower)
            _where_larger(upper, z1, z0, above)
            _where_larger(lower, z3, z2, below)
            _minus(upper, above)
            _minus(lower, below)
            _corrected(upper, z0, weight, s, t, dz[c, b:e])
            _corrected(above, z1, weight, s, t, dz[2 * q + c, b:e])
            _corrected(lower, z2, weight, s, t, dz[q + c, b:e])
            _corrected(below, z3, weight, s, t, dz[3 * q + c, b:e])


@_compiled
def _slopes(z: Any, dz: Any, weight: Any, first: Any, second: Any) -> None:
    rows, m = z.shape
    q, n = rows // 4, weight.shape[0]
    for c in range(q):
        first[c] = second[c] = 0
        for p in range(4):
            row, along = z[p * q + c], dz[p * q + c]
            one = two = row[0] * 0
            for b in range(0, m, n):
                for i in range(n):
                    v = along[b + i] * weight[i]
                    one += v
                    two += v * row[b + i]
            first[c] += one
            second[c] += two


@_compiled
def _choose(a: Any, b: Any, of_a: Any, of_b: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = of_b[i] if b[i] > a[i] else of_a[i]


@_compiled
def _followed(z: Any, dz: Any, shift: Any, scale: Any, slope: Any, level: Any, top: Any, y: Any, out: Any) -> None:
    q, m = y.shape
    block = min(m, 256)
    above, below = np.empty(block, z.dtype), np.empty(block, z.dtype)
    upper, lower = np.empty(block, z.dtype), np.empty(block, z.dtype)
    for c in range(q):
        for b in range(0, m, block):
            e = min(m, b + block)
            k = e - b
            z0, z1, z2, z3 = z[c, b:e], z[2 * q + c, b:e], z[q + c, b:e], z[3 * q + c, b:e]
            _choose(z0, z1, dz[c, b:e], dz[2 * q + c, b:e], upper[:k])
            _choose(z2, z3, dz[q + c, b:e], dz[3 * q + c, b:e], lower[:k])
            _larger(z0, z1, above[:k])
            _larger(z2, z3, below[:k])
            best, row, result = top[c, b:e], y[c, b:e], out[c, b:e]
            _choose(above[:k], below[:k], upper[:k], lower[:k], result)
            for i in range(k):
                v = scale[c] * (result[i] - shift[c]) + slope[c] * best[i] + level[c]
                result[i] = v if row[i] > 0 else v * 0


def slopes(z: Tensor, dz: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """See ``tensors.slopes``."""
    first, second = z.new_empty(2, z.shape[0] // 4)
    _slopes(*(t.numpy() for t in (z, dz, weight, first, second)))
    return first, second


def followed(
    z: Tensor, dz: Tensor, shift: Tensor, scale: Tensor, slope: Tensor, level: Tensor, top: Tensor, y: Tensor
) -> Tensor:
    """See ``tensors.followed``."""
    out = torch.empty_like(y)
    _followed(*(t.numpy() for t in (z, dz, shift, scale, slope, level, top, y, out)))
    return out


def gather(geometry: Geometry, image: Tensor, weight: Tensor, a: Tensor) -> Tensor:
    """See ``tensors.gather``."""
    shape = (geometry.channels, *geometry.window, *geometry.pooled, image.shape[-1])
    mean = a.new_empty(geometry.inputs)
    _gather(image.numpy(), weight.numpy(), a.numpy()[:-1].reshape(shape), mean.numpy())
    return mean


def scatter(geometry: Geometry, a: Tensor, n: int) -> Tensor:
    """See ``tensors.scatter``."""
    out = a.new_empty(geometry.channels, *geometry.padded, n)
    shape = (geometry.channels, *geometry.window, *geometry.pooled, n)
    _scatter(a.numpy().reshape(shape), out.numpy())
    return out


def peak(z: Tensor, weight: Tensor, top: Tensor) -> Tensor:
    """See ``tensors.peak``."""
    squares = z.new_empty(top.shape[0])
    _peak(z.numpy(), weight.numpy(), top.numpy(), squares.numpy())
    return squares


def rectified(top: Tensor, slope: Tensor, level: Tensor) -> Tensor:
    """See ``tensors.rectified``."""
    y = torch.empty_like(top)
    _rectified(top.numpy(), slope.numpy(), level.detach().numpy(), y.numpy())
    return y


def sums(grad: Tensor, y: Tensor, top: Tensor) -> tuple[Tensor, Tensor]:
    """See ``tensors.sums``."""
    g1, g2 = grad.new_empty(2, y.shape[0])
    _sums(grad.numpy(), y.numpy(), top.numpy(), g1.numpy(), g2.numpy())
    return g1, g2


def placed(
    grad: Tensor, y: Tensor, z: Tensor, weight: Tensor, scale: Tensor, slope: Tensor, level: Tensor, dz: Tensor
) -> None:
    """See ``tensors.placed``."""
    _placed(*(t.numpy() for t in (grad, y, z, weight, scale, slope, level, dz)))
