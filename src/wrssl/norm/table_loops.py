"""``table.py`` compiled by numba: three walks over a table in place of some ten calls of torch.

The rows of an example, all of which count alike, lie one behind the other. Several of them are walked over as one wide
row, which vector instructions like better than few channels; its sums are then folded into those of the channels. What
an example adds to a sum is added up by itself, so that rounding does not grow with the length of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wrssl.compiling import compiled
from wrssl.norm.table import Kept

WIDE = 128  # numbers; wider rows gain nothing


@compiled
def _fold(sums: Any, channels: int) -> None:
    width = sums.shape[0]
    for c in range(channels if width > channels else 0):
        total = sums[c]
        for j in range(c + channels, width, channels):
            total += sums[j]
        for j in range(c, width, channels):
            sums[j] = total


@compiled
def _forward(
    x: Any, gamma: Any, beta: Any, omega: Any, reference: Any, eps: float, channels: int, y: Any, mean: Any, var: Any
) -> None:
    examples, rows, width = x.shape
    part, slope = np.empty_like(mean), np.empty_like(mean)
    mean[:] = 0
    var[:] = 0
    for n in range(examples):
        part[:] = 0
        for i in range(rows):
            row, out = x[n, i], y[n, i]
            for c in range(width):  # stored: in one expression with what follows the compiler might reorder the terms
                out[c] = row[c] - reference[c]
                part[c] += out[c]
        for c in range(width):
            mean[c] += omega[n] * part[c]
    _fold(mean, channels)
    for n in range(examples):
        part[:] = 0
        for i in range(rows):
            out = y[n, i]
            for c in range(width):
                d = out[c] - mean[c]
                out[c] = d
                part[c] += d * d
        for c in range(width):
            var[c] += omega[n] * part[c]
    _fold(var, channels)
    for c in range(width):
        slope[c] = gamma[c] / np.sqrt(var[c] + eps)
        mean[c] += reference[c]
    for n in range(examples):
        for i in range(rows):
            out = y[n, i]
            for c in range(width):
                out[c] = out[c] * slope[c] + beta[c]


@compiled
def _backward(
    g: Any,
    x: Any,
    gamma: Any,
    omega: Any,
    mean: Any,
    var: Any,
    eps: float,
    channels: int,
    needs: bool,
    g1: Any,
    g2: Any,
    out: Any,
) -> None:
    examples, rows, width = x.shape
    scale, slope = np.empty_like(mean), np.empty_like(mean)  # until the sums are complete, an example's part of them
    g1[:] = 0
    g2[:] = 0
    for n in range(examples):
        scale[:] = 0
        slope[:] = 0
        for i in range(rows):
            row, along = x[n, i], g[n, i]
            for c in range(width):
                scale[c] += along[c]
                slope[c] += along[c] * (row[c] - mean[c])
        for c in range(width):
            g1[c] += scale[c]
            g2[c] += slope[c]
    _fold(g1, channels)
    _fold(g2, channels)
    for c in range(width):
        inverse = 1 / np.sqrt(var[c] + eps)
        g2[c] *= inverse
        scale[c], slope[c] = gamma[c] * inverse, g2[c] * inverse
    for n in range(examples if needs else 0):
        share = omega[n]
        for i in range(rows):
            row, along, own = x[n, i], g[n, i], out[n, i]
            for c in range(width):  # two loops: with fewer arrays in each, both use vector instructions
                own[c] = slope[c] * (row[c] - mean[c]) + g1[c]
            for c in range(width):
                own[c] = scale[c] * (along[c] - share * own[c])


def _walk(x: Tensor, omega: Tensor) -> tuple[Callable[[Tensor], Any], int]:
    """How to look at a table such as ``x`` as (examples, wide rows, numbers), and the rows in a wide one."""
    positions, together = len(x) // len(omega), 1
    while positions % (2 * together) == 0 and 2 * together * x.shape[1] <= WIDE:
        together *= 2
    shape = len(omega), positions // together, together * x.shape[1]
    return lambda t: t.view(shape).numpy(), together


def _repeat(values: Tensor, times: int) -> Any:
    return values.numpy() if times == 1 else values.repeat(times).numpy()


def forward(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, omega: Tensor, heaviest: int, eps: float
) -> tuple[Tensor, Kept]:
    """See ``table.forward``."""
    channels, y = x.shape[1], torch.empty_like(x)
    of, together = _walk(x, omega)
    size, shift = (x.new_full((channels,), v) if p is None else p for p, v in ((gamma, 1), (beta, 0)))
    reference = x[heaviest * (len(x) // len(omega))]
    mean, variance = x.new_empty(channels * together), x.new_empty(channels * together)
    repeated = [_repeat(t, together) for t in (size, shift)]
    _forward(
        of(x), *repeated, omega.numpy(), _repeat(reference, together), eps, channels, of(y), mean.numpy(),
        variance.numpy(),
    )  # fmt: skip
    return y, Kept(x, gamma, omega, mean[:channels], variance[:channels], eps)


def backward(kept: Kept, g: Tensor, needs_x: bool) -> tuple[Tensor | None, Tensor, Tensor]:
    """See ``table.backward``."""
    x, gamma, omega, mean, variance, eps = kept
    channels, (of, together) = x.shape[1], _walk(x, omega)
    out = torch.empty_like(x) if needs_x else None
    g1, g2 = x.new_empty(channels * together), x.new_empty(channels * together)
    size = torch.ones_like(mean) if gamma is None else gamma
    repeated = [_repeat(t, together) for t in (mean, variance)]
    target = np.empty((0, 0, 0), g1.numpy().dtype) if out is None else of(out)
    _backward(
        of(g), of(x), _repeat(size, together), omega.numpy(), *repeated, eps, channels, needs_x, g1.numpy(), g2.numpy(),
        target,
    )  # fmt: skip
    return out, g2[:channels], g1[:channels]
