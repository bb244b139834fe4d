"""Normalization of a table: a row for each example, or for each position of images with channels innermost.

One number per example and channel is so small that the number of calls is its cost, so forward and backward are loops
compiled by numba: three passes over the table in place of some ten calls of torch. Where examples have several rows,
ω_i is what each row of example i counts, and the sums run over all rows.

    μ = r + Σ ω_i (x_i − r),   d = x − μ,   σ² = Σ ω_i d_i²,   y = A d + β,   A = γ/ς,   ς = √(σ² + ε)
    dL/dx_i = A (g_i − ω_i (G1 + G2 d_i/ς)),   G1 = Σ g = dL/dβ,   G2 = Σ g d/ς = dL/dγ

    ẏ = A ḋ + Ȧ d + β̇,   ḋ = ẋ − Σ ω_i ẋ_i,   (σ²)˙ = 2 Σ ω_i d_i ḋ_i,   Ȧ = γ̇/ς − γ (σ²)˙/(2 ς³)

r is the heaviest example: numbers far from zero are subtracted before anything is rounded.

The rows of an example, which all count alike, are consecutive. Several of them are processed as one wide row, because
vector instructions need longer rows than few channels give; its sums are then folded into those of the channels. The
contribution of each example is summed by itself, so that rounding does not grow with the length of a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from wrssl.compiling import compiled
from wrssl.norm.composed import differentiable

WIDE = 128  # numbers in a wide row at most; other limits were not tried


class Weighing(NamedTuple):
    """How a batch is weighed.

    Args:
        omega: what each value of an example counts, (N,); over all values of a channel the sum is one.
        heaviest: the index of an example with the largest weight.
        eps: ε.
    """

    omega: Tensor
    heaviest: int
    eps: float


class Kept(NamedTuple):
    """What the derivatives need; none of these tensors is part of a graph.

    Args:
        x: the table, (N·S, C): S rows for each of N examples.
        gamma: γ.
        omega: what each row of an example counts, (N,).
        mean: μ.
        variance: σ².
        eps: ε.
    """

    x: Tensor
    gamma: Tensor | None
    omega: Tensor
    mean: Tensor
    variance: Tensor
    eps: float

    @property
    def shares(self) -> Tensor:
        """What each row counts, (N·S,)."""
        rows, examples = len(self.x), len(self.omega)
        return self.omega if examples == rows else self.omega.repeat_interleave(rows // examples)


@compiled
def _fold(sums: Any, channels: int) -> None:
    width = sums.shape[0]
    for c in range(channels):
        total = sums[c]
        for j in range(c + channels, width, channels):
            total += sums[j]
        for j in range(c, width, channels):
            sums[j] = total


@compiled
def _add(total: Any, part: Any) -> None:
    for c in range(len(total)):
        total[c] += part[c]


@compiled
def _forward(
    x: Any, gamma: Any, beta: Any, reference: Any, omega: Any, eps: float, channels: int, y: Any, mean: Any, var: Any
) -> None:
    examples, rows, width = x.shape
    several, slope = rows > 1, np.empty_like(mean)
    part = np.empty_like(mean) if several else mean  # a single row needs no sum of its own
    mean[:] = 0
    var[:] = 0
    for n in range(examples):
        share = omega[n]
        if several:
            part[:] = 0
        for i in range(rows):
            row, out = x[n, i], y[n, i]
            for c in range(width):  # stored: in one expression with the next line the compiler might reorder the terms
                out[c] = row[c] - reference[c]
                part[c] += share * out[c]
        if several:
            _add(mean, part)
    _fold(mean, channels)
    part = part if several else var
    for n in range(examples):
        share = omega[n]
        if several:
            part[:] = 0
        for i in range(rows):
            out = y[n, i]
            for c in range(width):
                d = out[c] - mean[c]
                out[c] = d
                part[c] += share * (d * d)
        if several:
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
    several = rows > 1
    scale, slope = np.empty_like(mean), np.empty_like(mean)  # until the sums are complete, an example's part of them
    first, second = (scale, slope) if several else (g1, g2)
    g1[:] = 0
    g2[:] = 0
    for n in range(examples):
        if several:
            first[:] = 0
            second[:] = 0
        for i in range(rows):
            row, along = x[n, i], g[n, i]
            for c in range(width):
                first[c] += along[c]
                second[c] += along[c] * (row[c] - mean[c])
        if several:
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
    """How many rows of a table such as ``x`` are processed as one wide row."""
    positions, together = len(x) // len(omega), 1
    while positions % (2 * together) == 0 and 2 * together * x.shape[1] <= WIDE:
        together *= 2
    return together


def _repeat(values: Any, times: int) -> Any:
    return values if times == 1 else np.tile(values, times)


def _per_channel(sums: Tensor, channels: int) -> Tensor:
    return sums if len(sums) == channels else sums[:channels]


def table_forward(x: Tensor, gamma: Tensor | None, beta: Tensor | None, how: Weighing) -> tuple[Tensor, Kept]:
    """The normalized ``x``, and what derivatives need, μ and σ² among it."""
    omega, heaviest, eps = how
    channels, together, y = x.shape[1], _rows_together(x, omega), torch.empty_like(x)
    width = channels * together
    mean, variance = x.new_empty(width), x.new_empty(width)
    size, shift = (mean.new_full((channels,), v) if p is None else p for p, v in ((gamma, 1), (beta, 0)))
    values, out = (t.numpy().reshape(len(omega), -1, width) for t in (x, y))
    repeated = [_repeat(t, together) for t in (size.numpy(), shift.numpy(), values[heaviest, 0, :channels])]
    _forward(values, *repeated, omega.numpy(), eps, channels, out, mean.numpy(), variance.numpy())
    return y, Kept(x, gamma, omega, _per_channel(mean, channels), _per_channel(variance, channels), eps)


def table_backward(kept: Kept, g: Tensor, needs_x: bool) -> tuple[Tensor | None, Tensor, Tensor]:
    """dL/dx, G2 and G1; dL/dx is None where it is not needed."""
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


def table_tangent(kept: Kept, dx: Tensor | None, d_gamma: Tensor | None, d_beta: Tensor | None) -> Tensor:
    """ẏ from the tangents of x, γ and β; None stands for zero."""
    (x, gamma, _, mean, variance, eps), omega = kept, kept.shares
    invstd = torch.rsqrt(variance + eps)
    d, A = x - mean, invstd if gamma is None else gamma * invstd
    d_A = torch.zeros_like(A) if d_gamma is None else d_gamma * invstd
    out = torch.zeros_like(x)
    if dx is not None:
        centered = dx - torch.mv(dx.t(), omega)
        d_A = d_A - A * invstd.square() * torch.mv((d * centered).t(), omega)
        out = centered * A
    out = torch.addcmul(out, d, d_A)
    return out if d_beta is None else out + d_beta


def is_table(x: Tensor) -> bool:
    """Whether there is one number per example and channel."""
    return x.dim() == 2 or x.numel() == x.shape[0] * x.shape[1]


def _flat(x: Tensor) -> Tensor:
    """``x`` as (N, C), outside of any graph."""
    x = x.detach()
    return x if x.dim() == 2 else x.view(x.shape[:2])


def normalized(x: Tensor, gamma: Tensor | None, beta: Tensor | None, how: Weighing) -> tuple[Tensor, Kept]:
    """The normalized ``x`` and what was kept, without a graph."""
    gamma, beta = (None if p is None else p.detach() for p in (gamma, beta))
    y, kept = table_forward(_flat(x), gamma, beta, how)
    return y if x.dim() == 2 else y.view(x.shape), kept


class TableNorm(torch.autograd.Function):
    """y = γ (x − μ)/√(σ² + ε) + β with weighted μ and σ², differentiable in reverse and in forward mode."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gamma: Tensor | None, beta: Tensor | None, how: Weighing, used: list[Tensor]
    ) -> Tensor:
        """``used`` receives μ and σ²; they are no results, because autograd would track those."""
        y, ctx.kept = normalized(x, gamma, beta, how)
        ctx.save_for_backward(x, gamma, beta)  # so that a change in place is noticed
        used += ctx.kept.mean, ctx.kept.variance
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """dL/dx, dL/dγ, dL/dβ."""
        x, gamma, beta = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: the gradients will be differentiated
            return *differentiable(x, gamma, beta, ctx.kept.shares, ctx.kept.eps, grad), None, None
        needs_x = ctx.needs_input_grad[0]
        dx, G2, G1 = table_backward(ctx.kept, _flat(grad.contiguous()), needs_x)
        own = dx if dx is None or x.dim() == 2 else dx.view(x.shape)
        return own, None if gamma is None else G2, None if beta is None else G1, None, None

    @staticmethod
    def jvp(ctx: Any, *along: Any) -> Tensor:
        """ẏ."""
        dx = None if along[0] is None else along[0].view(ctx.kept.x.shape)
        out = table_tangent(ctx.kept, dx, *along[1:3])
        return out if along[0] is None or along[0].dim() == 2 else out.view(along[0].shape)
