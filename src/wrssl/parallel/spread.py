"""Rows of a batch to the processes, and their features back, as functions that autograd knows.

    own(x) = x[rows]                  backward: each process puts its rows into zeros, and the sum is the gradient
    all(h) = Σ_processes put(h)       backward: g[rows], since every process goes on with all rows
    add(s) = Σ_processes s            backward: Σ_processes g, since every process goes on with its own rows

One kind of message serves all three, whatever the sizes of the parts: a sum. Adding zeros is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wrssl.norm import Part
from wrssl.parallel.group import Group


def own_rows(size: int, rank: int, processes: int) -> slice:
    """The rows of a batch of ``size`` that belong to process ``rank``: equal parts up to one row."""
    return slice(size * rank // processes, size * (rank + 1) // processes)


def spread(group: Group, x: Tensor, run: Callable[[Tensor, Part | None], Tensor]) -> Tensor:
    """``run`` on all rows of ``x``, each row in one process.

    Args:
        group: the processes; all of them call this with the same ``x``.
        x: the batch.
        run: from rows of ``x``, and what they are part of, to one row of output each.
    """
    if len(x) < group.size:  # too few to share: everybody runs all of them, and each counts for its share
        every: Tensor = _Own.apply(x, group, slice(0, len(x)))  # type: ignore[no-untyped-call]
        return _Shared.apply(run(every, None), group.size)  # type: ignore[no-untyped-call, no-any-return]
    rows = own_rows(len(x), group.rank, group.size)
    part = Part(rows, len(x), lambda sums: _Add.apply(sums, group))  # type: ignore[no-untyped-call]
    output: Tensor = _All.apply(run(_Own.apply(x, group, rows), part), group, rows, len(x))  # type: ignore[no-untyped-call]
    return output


def _placed(values: Tensor, rows: slice, size: int) -> Tensor:
    whole = values.new_zeros(size, *values.shape[1:])
    whole[rows] = values
    return whole


class _Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, rows: slice) -> Tensor:
        ctx.group, ctx.rows, ctx.size = group, rows, len(x)
        return x[rows].clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.group.total(_placed(grad, ctx.rows, ctx.size)), None, None


class _All(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, group: Group, rows: slice, size: int) -> Tensor:
        ctx.rows = rows
        return group.total(_placed(h, rows, size))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return grad[ctx.rows].clone(), None, None, None


class _Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sums: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.total(sums)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.group.total(grad), None


class _Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, size: int) -> Tensor:
        ctx.size = size
        return h.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return grad / ctx.size, None
