"""Weighted normalization on torch's own kernels: the same numbers as ``composed``, for a fraction of its time.

**Forward.** With the mean r of the heaviest example k as a cheap reference, d = x − r and ω_i = w_i / (S Σ w),

    δ = Σ ω_i d_is,   μ = r + δ,   σ² = Σ ω_i d_is² − δ²,   y = γ (d − δ) / √(σ² + ε) + β

One pass writes d, one reads it for both sums, one turns it into y in place. The difference is harmless, however far
the mean is from zero: example k alone contributes S ω_k (r − μ)² to σ², and S ω_k ≥ 1/N, so δ² ≤ N σ².

Images whose channels are innermost in memory are a table with a row per position, for ``table.py``.

**Backward.** With g = dL/dy, x̂ = (x − μ)/ς, ς = √(σ² + ε), A = γ/ς, G1 = Σ g and G2 = Σ g x̂ over the channel,

    dL/dγ = G2,   dL/dβ = G1,   dL/dx_is = A g_is − ω_i A (G1 + G2 x̂_is)

The last is A g plus a map of x that is affine in each row. Where σ² was clamped at zero, x̂ is zero up to rounding, and
the term with G2 vanishes.

**Rows.** A row is the S positions of one channel of one example. A batch (N, C, …) viewed as (1, N·C, S) is one example
with N·C channels, so torch's batch-norm kernels treat each row on its own. They are the only vectorized ones that sum a
product without storing it, or that multiply and add with two numbers per row in one call. Batches are contiguous there.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from wrssl.norm.composed import Normalized, differentiable, per_channel
from wrssl.norm.moments import Counts
from wrssl.norm.table import TableNorm, Weighing, is_table, normalized

# Loops over tables use one thread. With more threads than this torch's own kernels, which share the work, are used;
# measured with one thread only.
_ONE_CORE_IS_ENOUGH = 2
_SHORT = 8  # the kernels have a start-up cost per row; below this length plain tensor operations are faster
_GAMMA_AND_BETA = [False, True, True]  # of the three gradients that the backward kernel can return
_backward = torch.ops.aten.native_batch_norm_backward.default


def native(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, counts: Counts | None, eps: float
) -> Normalized | None:
    """Normalize ``x`` (N, C, …); None if this case is one for ``composed``."""
    if counts is None or not _possible(x, gamma, beta):
        return None
    positions = math.prod(x.shape[2:])
    n = counts.values(positions)
    if not n:
        return None
    omega, used = counts.shares(x.dtype), list[Tensor]()
    if positions > 1:
        omega = omega / positions
    how = Weighing(omega, counts.heaviest, eps)
    if not x.is_contiguous():
        y = _channels_last(x, gamma, beta, how, used)
        return Normalized(y, used[0], used[1], 1, n / (n - 1))
    table = is_table(x)
    if table and not torch.is_grad_enabled() and not _has_tangent(x, gamma, beta):
        y, kept = normalized(x, gamma, beta, how)
        return Normalized(y, kept.mean, kept.variance, 1, n / (n - 1))
    function: type[torch.autograd.Function] = TableNorm if table else _Native
    y = function.apply(x, gamma, beta, how, used)
    return Normalized(y, used[0], used[1], 1, n / (n - 1))


def _possible(x: Tensor, gamma: Tensor | None, beta: Tensor | None) -> bool:
    given = [p for p in (x, gamma, beta) if p is not None]
    return (
        x.is_cpu  # where the kernels were measured
        and (x.is_contiguous() or _is_channels_last(x))
        and all(p.dtype == x.dtype for p in given)
        # vmap cannot look into a custom function, and forward mode only where the function has a ``jvp``.
        and not torch._C._are_functorch_transforms_active()
        and (is_table(x) or not x.is_contiguous() or not _has_tangent(*given))
        and not torch.compiler.is_compiling()  # torch.compile fuses the composed form itself
    )


def _is_channels_last(x: Tensor) -> bool:
    return x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)


def _channels_last(x: Tensor, gamma: Tensor | None, beta: Tensor | None, how: Weighing, used: list[Tensor]) -> Tensor:
    """Channels are innermost: every position of an image is a row of a table, and counts as its example does."""
    n, channels, height, width = x.shape
    if torch.get_num_threads() > _ONE_CORE_IS_ENOUGH and not _has_tangent(x, gamma, beta):
        y: Tensor = _Native.apply(x.contiguous(), gamma, beta, how, used)  # type: ignore[no-untyped-call]
        return y.contiguous(memory_format=torch.channels_last)
    rows = x.permute(0, 2, 3, 1).reshape(-1, channels)
    table: Tensor = TableNorm.apply(rows, gamma, beta, how, used)  # type: ignore[no-untyped-call]
    return table.view(n, height, width, channels).permute(0, 3, 1, 2)


def _has_tangent(*tensors: Tensor | None) -> bool:
    """Whether one of these is differentiated in forward mode."""
    return any(t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors)


class _Native(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gamma: Tensor | None, beta: Tensor | None, how: Weighing, used: list[Tensor]
    ) -> Tensor:
        omega, heaviest, ctx.eps = how
        reference = x[heaviest].view(x.shape[1], -1).mean(1)
        d = x - reference.view(per_channel(x))
        squares, sums = row_sums(d)
        delta = omega @ sums
        variance = torch.addcmul(omega @ squares, delta, delta, value=-1).clamp_min_(0)
        mean, none = reference + delta, d.new_empty(0)
        # Into d itself: the kernel reads and writes each number once.
        torch.native_batch_norm(d, gamma, beta, delta, variance, False, 0.0, ctx.eps, out=(d, none, none))
        ctx.save_for_backward(x, gamma, beta, omega, mean, variance)
        used += mean, variance  # not as results, because autograd would track those
        return d

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, gamma, beta, omega, mean, variance = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: the gradients will be differentiated
            return *differentiable(x, gamma, beta, omega, ctx.eps, grad), None, None
        g, invstd = grad.contiguous(), torch.rsqrt(variance + ctx.eps)
        G2, G1 = channel_products(g, x, mean, invstd)
        grad_x = None
        if ctx.needs_input_grad[0]:
            A = invstd if gamma is None else gamma * invstd
            slope, per_row = A * invstd * G2, -omega.view(-1, 1)
            correction = row_affine(x, per_row * slope, per_row * torch.addcmul(A * G1, mean, slope, value=-1))
            grad_x = correction.addcmul_(g, A.view(per_channel(x)))
        return grad_x, None if gamma is None else G2, None if beta is None else G1, None, None


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
        zeros, ones = x.new_zeros(N * C), x.new_ones(N * C)  # as mean and variance: there is nothing to normalize
        rows, _, _ = torch.native_batch_norm(rows, scale.view(-1), shift.view(-1), zeros, ones, False, 0.0, 0.0)
    return rows.view(x.shape)
