"""The inner loops of a block, compiled by numba: each number is read and written once.

Every inner loop runs over examples, with few arrays in it, so that the compiler can prove that none overlaps another
and uses vector instructions. NaN stays NaN everywhere.

Examples are innermost: z is (down, 4·C, right·N), with planes ordered (dx, dy); what is pooled is (C, M),
M = down·right·N. First come the windows of images, into the columns of a matrix and back, then batch norm, ReLU and the
maximum of the four planes: forward, backward and along a tangent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wrssl.compiling import compiled
from wrssl.fast.geometry import Geometry


@compiled
def _gather(image: Any, weight: Any, a: Any, average: Any, kernel: int, mean: Any) -> None:
    height, channels, columns, right, n = a.shape
    down = (height - kernel) // 2 + 1
    mean[:] = 0
    total = np.zeros(image.shape[2], image.dtype)
    for c in range(channels):
        for v in range(height):
            for h in range(image.shape[2]):
                pixel = image[c, v, h]
                one = pixel[0] * 0
                for i in range(n):
                    one += pixel[i] * weight[i]
                total[h] = one
            for s in range(columns):
                whole = total[0] * 0
                for x in range(right):
                    whole += total[2 * x + s]
                    pixel, part = image[c, v, 2 * x + s], a[v, c, s, x]
                    for i in range(n):  # not part[:] = pixel, which is several times slower
                        part[i] = pixel[i]
                for r in range(v % 2, kernel, 2):  # this line is line r of the windows of pooled row (v - r) / 2
                    if 0 <= v - r < 2 * down:
                        for o in range(mean.shape[0]):
                            mean[o] += average[o, (r * channels + c) * columns + s] * whole
    for o in range(mean.shape[0]):
        mean[o] /= down * right * n


@compiled
def _scatter(a: Any, out: Any) -> None:
    down, rows, channels, columns, right, n = a.shape
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
                        part = a[y, r, c, s, x]
                        for i in range(n):
                            pixel[i] += part[i]


def gather(geometry: Geometry, image: Tensor, weight: Tensor, a: Tensor, average: Tensor) -> Tensor:
    """Copy the neighbors of all pooled columns of the padded images (C, H, W, N) into A.

    Returns the mean of the product for a kernel whose planes have the mean ``average``; ``weight`` counts the examples,
    with the sum N.
    """
    mean = a.new_empty(len(average))
    _gather(image.numpy(), weight.numpy(), a.numpy(), average.numpy(), geometry.window[0], mean.numpy())
    return mean


def scatter(geometry: Geometry, a: Tensor, n: int) -> Tensor:
    """The transpose of ``gather``, from all A_y: every entry added to the pixel that it was read from."""
    out = a.new_empty(geometry.channels, *geometry.padded, n)
    (rows, columns), (down, right) = geometry.window, geometry.pooled
    _scatter(a.numpy().reshape(down, rows, geometry.channels, columns, right, n), out.numpy())
    return out


@compiled
def _normalize_pool(
    z: Any,
    mean: Any,
    weight: Any,
    size: Any,
    beta: Any,
    eps: float,
    given: bool,
    top: Any,
    y: Any,
    variance: Any,
    inverse: Any,
) -> None:
    q, m = top.shape
    n = weight.shape[0]
    down, _, right = z.shape
    for c in range(q):
        mu, whole, result = mean[c], top[c], y[c]
        total = mu * 0
        for v in range(down):
            z0, z1, z2, z3 = z[v, c], z[v, 2 * q + c], z[v, q + c], z[v, 3 * q + c]
            best = whole[v * right : (v + 1) * right]
            for b in range(0, right, n):
                for i in range(n):
                    v0, v1, v2, v3 = z0[b + i] - mu, z1[b + i] - mu, z2[b + i] - mu, z3[b + i] - mu
                    upper = v0 if v0 >= v1 else v1
                    lower = v2 if v2 >= v3 else v3
                    best[b + i] = upper if upper >= lower else lower
                    total += (v0 * v0 + v1 * v1 + v2 * v2 + v3 * v3) * weight[i]
        if not given:
            variance[c] = total / (4 * m)
        inverse[c] = 1 / np.sqrt(variance[c] + eps)
        slope, level = size[c] * inverse[c], beta[c]
        for j in range(m):
            v = whole[j] * slope + level
            result[j] = v if v > 0 else v * 0


@compiled
def _larger(a: Any, b: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = a[i] if a[i] >= b[i] else b[i]


@compiled
def _where_larger(g: Any, a: Any, b: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = g[i] if a[i] > b[i] else g[i] * 0


@compiled
def _minus(a: Any, b: Any) -> None:
    for i in range(a.shape[0]):
        a[i] -= b[i]


@compiled
def _corrected(g: Any, z: Any, mu: Any, weight: Any, slope: Any, level: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = g[i] - weight[i] * (slope * (z[i] - mu) + level)


@compiled
def _normalize_pool_backward(
    grad: Any, y: Any, z: Any, mean: Any, top: Any, weight: Any, size: Any, inverse: Any, dz: Any, g1: Any, g2: Any
) -> None:
    q, m = y.shape
    n = weight.shape[0]
    down, _, right = z.shape
    upper, lower = np.empty(n, z.dtype), np.empty(n, z.dtype)
    above, below = np.empty(n, z.dtype), np.empty(n, z.dtype)
    line = np.empty(2, z.dtype)  # a division by an integer gives double precision, which would slow the loops down
    for c in range(q):
        whole, active, best = grad[c], y[c], top[c]
        first = second = whole[0] * 0
        for j in range(m):
            g = whole[j] if active[j] > 0 else whole[j] * 0
            first += g
            second += g * best[j]
        g1[c], g2[c] = first, second * inverse[c]
        k = size[c] * inverse[c]
        line[0], line[1] = k * inverse[c] * g2[c] / (4 * m), k * first / (4 * m)
        s, t = line
        mu = mean[c]
        for v in range(down):
            for b in range(0, right, n):
                e, f = b + n, v * right + b
                row, out = whole[f : f + n], active[f : f + n]
                z0, z1, z2, z3 = z[v, c, b:e], z[v, 2 * q + c, b:e], z[v, q + c, b:e], z[v, 3 * q + c, b:e]
                for i in range(n):
                    upper[i] = row[i] * k if out[i] > 0 else row[i] * 0
                _larger(z0, z1, above)
                _larger(z2, z3, below)
                # To the second row where that is strictly larger, else to the first; likewise to one of two columns.
                _where_larger(upper, below, above, lower)
                _minus(upper, lower)
                _where_larger(upper, z1, z0, above)
                _where_larger(lower, z3, z2, below)
                _minus(upper, above)
                _minus(lower, below)
                _corrected(upper, z0, mu, weight, s, t, dz[v, c, b:e])
                _corrected(above, z1, mu, weight, s, t, dz[v, 2 * q + c, b:e])
                _corrected(lower, z2, mu, weight, s, t, dz[v, q + c, b:e])
                _corrected(below, z3, mu, weight, s, t, dz[v, 3 * q + c, b:e])


@compiled
def _tangent_sums(z: Any, mean: Any, dz: Any, weight: Any, first: Any, second: Any) -> None:
    down, rows, right = z.shape
    q, n = rows // 4, weight.shape[0]
    for c in range(q):
        mu = mean[c]
        one = two = mu * 0
        for v in range(down):
            for p in range(4):
                row, along = z[v, p * q + c], dz[v, p * q + c]
                for b in range(0, right, n):
                    for i in range(n):
                        counted = along[b + i] * weight[i]
                        one += counted
                        two += counted * (row[b + i] - mu)
        first[c], second[c] = one, two


@compiled
def _choose(a: Any, b: Any, of_a: Any, of_b: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = of_b[i] if b[i] > a[i] else of_a[i]


@compiled
def _normalize_pool_tangent(
    z: Any, dz: Any, shift: Any, scale: Any, slope: Any, level: Any, top: Any, y: Any, out: Any
) -> None:
    q, _ = y.shape
    down, _, right = z.shape
    above, below = np.empty(right, z.dtype), np.empty(right, z.dtype)
    upper, lower = np.empty(right, z.dtype), np.empty(right, z.dtype)
    for c in range(q):
        for v in range(down):
            z0, z1, z2, z3 = z[v, c], z[v, 2 * q + c], z[v, q + c], z[v, 3 * q + c]
            _choose(z0, z1, dz[v, c], dz[v, 2 * q + c], upper)
            _choose(z2, z3, dz[v, q + c], dz[v, 3 * q + c], lower)
            _larger(z0, z1, above)
            _larger(z2, z3, below)
            b, e = v * right, (v + 1) * right
            best, row, result = top[c, b:e], y[c, b:e], out[c, b:e]
            _choose(above, below, upper, lower, result)
            for i in range(right):
                d = scale[c] * (result[i] - shift[c]) + slope[c] * best[i] + level[c]
                result[i] = d if row[i] > 0 else d * 0


def normalize_pool(
    z: Tensor, mean: Tensor, weight: Tensor, size: Tensor, beta: Tensor, eps: float, given: Tensor | None, top: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The maximum of the four planes of z − mean into ``top`` (C, M), normalized and rectified.

    Returns y = relu(size/ς · top + beta), σ² (the mean of weight · (z − mean)², or ``given``), 1/ς = 1/√(σ² + eps).
    """
    y = torch.empty_like(top)
    variance, inverse = (z.new_empty(len(top)) if given is None else given), z.new_empty(len(top))
    inputs = [t.numpy() for t in (z, mean, weight, size, beta.detach())]
    _normalize_pool(*inputs, eps, given is not None, *(t.numpy() for t in (top, y, variance, inverse)))
    return y, variance, inverse


def normalize_pool_backward(
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

    The plane of the maximum gets size/ς · g; from all planes weight · size/ς (G1 + G2 · (z − mean)/ς) / (4 M) is
    subtracted, the part of the statistics.
    """
    g1, g2 = grad.new_empty(2, len(y))
    _normalize_pool_backward(*(t.numpy() for t in (grad, y, z, mean, top, weight, size, inverse, dz, g1, g2)))
    return g1, g2


def tangent_sums(z: Tensor, mean: Tensor, dz: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Σ weight ż and Σ weight (z − mean) ż per channel, for tangents ``dz`` of z."""
    first, second = z.new_empty(2, len(mean))
    _tangent_sums(*(t.numpy() for t in (z, mean, dz, weight, first, second)))
    return first, second


def normalize_pool_tangent(
    z: Tensor, dz: Tensor, shift: Tensor, scale: Tensor, slope: Tensor, level: Tensor, top: Tensor, y: Tensor
) -> Tensor:
    """``scale · (ṗ − shift) + slope · top + level`` where y > 0, else 0; ṗ is the tangent of the maximum."""
    out = torch.empty_like(y)
    _normalize_pool_tangent(*(t.numpy() for t in (z, dz, shift, scale, slope, level, top, y, out)))
    return out
