"""``table.py`` compiled by numba: three walks over a table in place of some ten calls of torch.

The rows of an example, all of which count alike, lie one behind the other. Several of them are walked over as one wide
row, which vector instructions like better than few channels; its sums are then folded into those of the channels. What
an example adds to a sum is added up by itself, so that rounding does not grow with the length of a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wrssl.compiling import compiled
from wrssl.norm.table import Kept

WIDE = 128  # numbers in a wide row at most; other limits were not tried


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
def _add(total: Any, part: Any) -> None:
    for c in range(total.shape[0]):
        total[c] += part[c]


@compiled
def _forward(
    x: Any, gamma: Any, beta: Any, reference: Any, omega: Any, eps: float, channels: int, y: Any, mean: Any, var: Any
) -> None:
    examples, rows, width = x.shape
    slope = np.empty_like(mean)
    part = np.empty_like(mean) if rows > 1 else mean  # a single row needs no sum of its own
    mean[:] = 0
    var[:] = 0
    for n in range(examples):
        share = omega[n]
        if rows > 1:
            part[:] = 0
        for i in range(rows):
            row, out = x[n, i], y[n, i]
            for c in range(width):  # stored: in one expression with what follows the compiler might reorder the terms
                out[c] = row[c] - reference[c]
                part[c] += share * out[c]
        if rows > 1:
            _add(mean, part)
    _fold(mean, channels)
    part = part if rows > 1 else var
    for n in range(examples):
        share = omega[n]
        if rows > 1:
            part[:] = 0
        for i in range(rows):
            out = y[n, i]
            for c in range(width):
                d = out[c] - mean[c]
                out[c] = d
                part[c] += share * (d * d)
        if rows > 1:
            _add(var, part)
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
    mean: Any,
    var: Any,
    omega: Any,
    eps: float,
    channels: int,
    needs: bool,
    g1: Any,
    g2: Any,
    out: Any,
) -> None:
    examples, rows, width = x.shape
    scale, slope = np.empty_like(mean), np.empty_like(mean)  # until the sums are complete, an example's part of them
    first, second = (scale, slope) if rows > 1 else (g1, g2)
    g1[:] = 0
    g2[:] = 0
    for n in range(examples):
        if rows > 1:
            first[:] = 0
            second[:] = 0
        for i in range(rows):
            row, along = x[n, i], g[n, i]
            for c in range(width):
                first[c] += along[c]
                second[c] += along[c] * (row[c] - mean[c])
        if rows > 1:
            _add(g1, first)
            _add(g2, second)
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


def _rows_together(x: Tensor, omega: Tensor) -> int:
    """How many rows of a table such as ``x`` are walked over as one wide row."""
    positions, together = len(x) // len(omega), 1
    while positions % (2 * together) == 0 and 2 * together * x.shape[1] <= WIDE:
        together *= 2
    return together


def _repeat(values: Any, times: int) -> Any:
    return values if times == 1 else np.tile(values, times)


def _per_channel(sums: Tensor, channels: int) -> Tensor:
    return sums if len(sums) == channels else sums[:channels]


def forward(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, omega: Tensor, heaviest: int, eps: float
) -> tuple[Tensor, Kept]:
    """See ``table.forward``."""
    channels, together, y = x.shape[1], _rows_together(x, omega), torch.empty_like(x)
    width = channels * together
    mean, variance = x.new_empty(width), x.new_empty(width)
    size, shift = (mean.new_full((channels,), v) if p is None else p for p, v in ((gamma, 1), (beta, 0)))
    values, out = (t.numpy().reshape(len(omega), -1, width) for t in (x, y))
    repeated = [_repeat(t, together) for t in (size.numpy(), shift.numpy(), values[heaviest, 0, :channels])]
    _forward(values, *repeated, omega.numpy(), eps, channels, out, mean.numpy(), variance.numpy())
    return y, Kept(x, gamma, omega, _per_channel(mean, channels), _per_channel(variance, channels), eps)


def backward(kept: Kept, g: Tensor, needs_x: bool) -> tuple[Tensor | None, Tensor, Tensor]:
    """See ``table.backward``."""
    x, gamma, omega, mean, variance, eps = kept
    channels, together = x.shape[1], _rows_together(x, omega)
    width = channels * together
    out = torch.empty_like(x) if needs_x else x.new_empty(0)
    g1, g2 = x.new_empty(width), x.new_empty(width)
    size = torch.ones_like(mean) if gamma is None else gamma
    along, values, target = (t.numpy().reshape(-1, len(x) // len(omega) // together, width) for t in (g, x, out))
    repeated = [_repeat(t.numpy(), together) for t in (size, mean, variance)]
    _backward(along, values, *repeated, omega.numpy(), eps, channels, needs_x, g1.numpy(), g2.numpy(), target)
    return out if needs_x else None, _per_channel(g2, channels), _per_channel(g1, channels)
