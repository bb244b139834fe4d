"""``table.py`` compiled by numba: three walks over a table that fits the cache, in place of some ten calls of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wrssl.compiling import compiled
from wrssl.norm.table import Kept


@compiled
def _forward(
    x: Any, gamma: Any, beta: Any, omega: Any, heaviest: int, eps: float, y: Any, mean: Any, variance: Any
) -> None:
    rows, channels = x.shape
    reference, slope = x[heaviest], np.empty_like(mean)
    mean[:] = 0
    variance[:] = 0
    for i in range(rows):
        share, row, out = omega[i], x[i], y[i]
        for c in range(channels):  # stored: in one expression with what follows the compiler might reorder the terms
            out[c] = row[c] - reference[c]
            mean[c] += share * out[c]
    for i in range(rows):
        share, out = omega[i], y[i]
        for c in range(channels):
            d = out[c] - mean[c]
            out[c] = d
            variance[c] += share * (d * d)
    for c in range(channels):
        slope[c] = gamma[c] / np.sqrt(variance[c] + eps)
        mean[c] += reference[c]
    for i in range(rows):
        out = y[i]
        for c in range(channels):
            out[c] = out[c] * slope[c] + beta[c]


@compiled
def _backward(
    g: Any,
    x: Any,
    gamma: Any,
    omega: Any,
    mean: Any,
    variance: Any,
    eps: float,
    needs: bool,
    g1: Any,
    g2: Any,
    out: Any,
) -> None:
    rows, channels = x.shape
    scale, slope = np.empty_like(mean), np.empty_like(mean)
    g1[:] = 0
    g2[:] = 0
    for i in range(rows):
        row, along = x[i], g[i]
        for c in range(channels):
            g1[c] += along[c]
            g2[c] += along[c] * (row[c] - mean[c])
    for c in range(channels):
        inverse = 1 / np.sqrt(variance[c] + eps)
        g2[c] *= inverse
        scale[c], slope[c] = gamma[c] * inverse, g2[c] * inverse
    if needs:
        for i in range(rows):
            share, row, along, own = omega[i], x[i], g[i], out[i]
            for c in range(channels):  # two loops: with fewer arrays in each, both use vector instructions
                own[c] = slope[c] * (row[c] - mean[c]) + g1[c]
            for c in range(channels):
                own[c] = scale[c] * (along[c] - share * own[c])


def forward(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, omega: Tensor, heaviest: int, eps: float
) -> tuple[Tensor, Kept]:
    """See ``table.forward``."""
    y, mean, variance = torch.empty_like(x), x.new_empty(x.shape[1]), x.new_empty(x.shape[1])
    size, shift = (mean.new_full(mean.shape, v) if p is None else p for p, v in ((gamma, 1), (beta, 0)))
    inputs = [t.numpy() for t in (x, size, shift, omega)]
    _forward(*inputs, heaviest, eps, y.numpy(), mean.numpy(), variance.numpy())
    return y, Kept(x, gamma, omega, mean, variance, eps)


def backward(kept: Kept, g: Tensor, needs_x: bool) -> tuple[Tensor | None, Tensor, Tensor]:
    """See ``table.backward``."""
    x, gamma, omega, mean, variance, eps = kept
    out = torch.empty_like(x) if needs_x else x.new_empty((0, 0))
    g1, g2 = torch.empty_like(mean), torch.empty_like(mean)
    size = torch.ones_like(mean) if gamma is None else gamma
    inputs = [t.numpy() for t in (g, x, size, omega, mean, variance)]
    _backward(*inputs, eps, needs_x, g1.numpy(), g2.numpy(), out.numpy())
    return out if needs_x else None, g2, g1
