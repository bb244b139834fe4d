"""Sums and affine maps with torch's batch-norm kernels: over channels, and over rows.

A row is what one channel of one example has in its S positions. A batch (N, C, …) looked at as (1, N·C, S) is one
example with N·C channels, so the kernels treat each row on its own. They are the only vectorised ones that sum a
product without storing it, or that multiply and add with two numbers per row in one go.

Batches are contiguous here.
"""

from __future__ import annotations

import torch
from torch import Tensor

_SHORT = 8  # the kernels have a start-up cost per row; below this length plain tensor operations are faster
_GAMMA_AND_BETA = [False, True, True]  # of the three gradients that the backward kernel can return
_backward = torch.ops.aten.native_batch_norm_backward.default


def channel_products(g: Tensor, x: Tensor, mean: Tensor, invstd: Tensor) -> tuple[Tensor, Tensor]:
    """Σ g (x − mean)·invstd and Σ g over each channel of ``g`` and ``x`` (N, C, …), both (C,)."""
    _, products, sums = _backward(g, x, None, None, None, mean, invstd, True, 0.0, _GAMMA_AND_BETA)
    return products, sums


def row_sums(x: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_s x_s² and Σ_s x_s of each row of ``x`` (N, C, …), both (N, C)."""
    N, C = x.shape[:2]
    rows = x.view(1, N * C, -1)
    if rows.shape[2] < _SHORT:
        squares, sums = rows.square().sum(2), rows.sum(2)
    else:
        # The kernel calls them the gradients of γ and β; here g is x, the mean is zero and invstd one.
        squares, sums = channel_products(rows, rows, x.new_zeros(N * C), x.new_ones(N * C))
    return squares.view(N, C), sums.view(N, C)


def row_affine(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """``scale`` · x + ``shift`` for ``x`` (N, C, …) and two numbers per row, both (N, C)."""
    N, C = x.shape[:2]
    rows = x.view(1, N * C, -1)
    if rows.shape[2] < _SHORT:
        rows = torch.addcmul(shift.view(1, N * C, 1), rows, scale.view(1, N * C, 1))
    else:
        zeros, ones = x.new_zeros(N * C), x.new_ones(N * C)  # as mean and variance: there is nothing to normalise
        rows, _, _ = torch.native_batch_norm(rows, scale.view(-1), shift.view(-1), zeros, ones, False, 0.0, 0.0)
    return rows.view(x.shape)
