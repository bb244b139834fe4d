"""Windows of images into the columns of a matrix, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
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
    """See ``tensors.gather``."""
    mean = a.new_empty(len(average))
    _gather(image.numpy(), weight.numpy(), a.numpy(), average.numpy(), geometry.window[0], mean.numpy())
    return mean


def scatter(geometry: Geometry, a: Tensor, n: int) -> Tensor:
    """See ``tensors.scatter``."""
    out = a.new_empty(geometry.channels, *geometry.padded, n)
    (rows, columns), (down, right) = geometry.window, geometry.pooled
    _scatter(a.numpy().reshape(down, rows, geometry.channels, columns, right, n), out.numpy())
    return out
