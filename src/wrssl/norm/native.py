"""Weighted normalisation on torch's own kernels: the same numbers as ``composed``, for a fraction of its time.

**Forward.** With the mean r of the heaviest example k as a cheap reference, d = x − r and ω_i = w_i / (S Σ w),

    δ = Σ ω_i d_is,   μ = r + δ,   σ² = Σ ω_i d_is² − δ²,   y = γ (d − δ) / √(σ² + ε) + β

One pass writes d, one reads it for both sums, one turns it into y where it lies. The difference is harmless, however
far the mean is from zero: example k alone contributes S ω_k (r − μ)² to σ², and S ω_k ≥ 1/N, so δ² ≤ N σ².

Images whose channels lie innermost in memory are a table with a row per position, for ``table.py``.

**Backward.** With g = dL/dy, x̂ = (x − μ)/ς, ς = √(σ² + ε), A = γ/ς, G1 = Σ g and G2 = Σ g x̂ over the channel,

    dL/dγ = G2,   dL/dβ = G1,   dL/dx_is = A g_is − ω_i A (G1 + G2 x̂_is)

The last is A g plus a map of x that is affine in each row. Where σ² was cut at zero, x̂ is zero up to rounding, and the
term with G2 is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from wrssl.norm.composed import Normalised, differentiable, per_channel
from wrssl.norm.counts import Counts
from wrssl.norm.rows import channel_products, row_affine, row_sums
from wrssl.norm.table_function import TableNorm, is_table, normalised

# Loops over tables use one thread. Beyond this many torch's own kernels, which share the work, are taken; measured
# with one thread only.
_ONE_CORE_IS_ENOUGH = 2
_enabled: ContextVar[bool] = ContextVar("native_kernels", default=True)


@contextmanager
def native_kernels(enabled: bool) -> Iterator[None]:
    """Within this context the native form is used where it can be, or nowhere: for comparisons."""
    token = _enabled.set(enabled)
    try:
        yield
    finally:
        _enabled.reset(token)


def native(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, counts: Counts | None, eps: float
) -> Normalised | None:
    """Normalise ``x`` (N, C, …); None if this case is one for ``composed``."""
    if counts is None or not _possible(x, gamma, beta):
        return None
    positions = math.prod(x.shape[2:])
    n = counts.values(positions)
    if not n:
        return None
    omega, used = counts.shares(x.dtype), list[Tensor]()
    if positions > 1:
        omega = omega / positions
    if not x.is_contiguous():
        y = _channels_last(x, gamma, beta, omega, counts.heaviest, eps, used)
        return Normalised(y, used[0], used[1], 1, n / (n - 1))
    table = is_table(x)
    if table and not torch.is_grad_enabled() and not _along(x, gamma, beta):
        y, kept = normalised(x, gamma, beta, omega, counts.heaviest, eps)
        return Normalised(y, kept.mean, kept.variance, 1, n / (n - 1))
    function: type[torch.autograd.Function] = TableNorm if table else _Native
    y = function.apply(x, gamma, beta, omega, counts.heaviest, eps, used)
    return Normalised(y, used[0], used[1], 1, n / (n - 1))


def _possible(x: Tensor, gamma: Tensor | None, beta: Tensor | None) -> bool:
    given = [p for p in (x, gamma, beta) if p is not None]
    return (
        _enabled.get()
        and x.device.type == "cpu"  # where the kernels were measured
        and (x.is_contiguous() or _is_channels_last(x))
        and all(p.dtype == x.dtype for p in given)
        # vmap cannot look into a custom function, and forward mode only where the function has a ``jvp``.
        and not torch._C._are_functorch_transforms_active()
        and (is_table(x) or not x.is_contiguous() or not _along(*given))
    )


def _is_channels_last(x: Tensor) -> bool:
    return x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)


def _channels_last(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    omega: Tensor,
    heaviest: int,
    eps: float,
    used: list[Tensor],
) -> Tensor:
    """Channels lie innermost: every position of an image is a row of a table, and counts as its example does."""
    n, channels, height, width = x.shape
    if torch.get_num_threads() > _ONE_CORE_IS_ENOUGH and not _along(x, gamma, beta):
        y: Tensor = _Native.apply(x.contiguous(), gamma, beta, omega, heaviest, eps, used)  # type: ignore[no-untyped-call]
        return y.contiguous(memory_format=torch.channels_last)
    rows = x.permute(0, 2, 3, 1).reshape(-1, channels)
    table: Tensor = TableNorm.apply(rows, gamma, beta, omega, heaviest, eps, used)  # type: ignore[no-untyped-call]
    return table.view(n, height, width, channels).permute(0, 3, 1, 2)


def _along(*tensors: Tensor | None) -> bool:
    """Whether somebody differentiates along a tangent of one of these."""
    return any(t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors)


class _Native(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gamma: Tensor | None,
        beta: Tensor | None,
        omega: Tensor,
        heaviest: int,
        eps: float,
        used: list[Tensor],
    ) -> Tensor:
        ctx.eps = eps
        reference = x[heaviest].view(x.shape[1], -1).mean(1)
        d = x - reference.view(per_channel(x))
        squares, sums = row_sums(d)
        delta = omega @ sums
        variance = torch.addcmul(omega @ squares, delta, delta, value=-1).clamp_min_(0)
        mean, none = reference + delta, d.new_empty(0)
        # Into d itself: the kernel reads and writes each number once.
        torch.native_batch_norm(d, gamma, beta, delta, variance, False, 0.0, eps, out=(d, none, none))
        ctx.save_for_backward(x, gamma, beta, omega, mean, variance)
        used += mean, variance  # not as results: for each of those autograd keeps books
        return d

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, gamma, beta, omega, mean, variance = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: somebody wants derivatives of what is returned here
            return *differentiable(x, gamma, beta, omega, ctx.eps, grad), None, None, None, None
        g, invstd = grad.contiguous(), torch.rsqrt(variance + ctx.eps)
        G2, G1 = channel_products(g, x, mean, invstd)
        grad_x = None
        if ctx.needs_input_grad[0]:
            A = invstd if gamma is None else gamma * invstd
            slope, per_row = A * invstd * G2, -omega.view(-1, 1)
            correction = row_affine(x, per_row * slope, per_row * torch.addcmul(A * G1, mean, slope, value=-1))
            grad_x = correction.addcmul_(g, A.view(per_channel(x)))
        return grad_x, None if gamma is None else G2, None if beta is None else G1, None, None, None, None
