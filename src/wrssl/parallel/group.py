"""The processes of one run: their messages, and rows of a batch to the processes and features back.

The functions that spread a batch are known to autograd::

    own(x) = x[rows]                  backward: each process puts its rows into zeros, and the sum is the gradient
    all(h) = Σ_processes put(h)       backward: g[rows], since every process continues with all rows
    add(s) = Σ_processes s            backward: Σ_processes g, since every process continues with its own rows

One kind of message serves all three, whatever the sizes of the parts: a sum. Adding zeros is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from wrssl.errors import WRSSLError
from wrssl.norm import Part


class Messages(Protocol):
    """What a group needs of an engine; Lightning's Fabric has it."""

    global_rank: int
    world_size: int

    def all_reduce(self, data: Any, group: Any = None, reduce_op: str = "mean") -> Any:
        """The sum over all processes."""

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        """The value of process ``src``."""


class LostProcessError(WRSSLError):
    """Another process of the run has ended, so that this one cannot continue."""

    said_by_the_first = True  # so the others need not report it too


class Group:
    """Processes that do the same steps on the same batches.

    Args:
        engine: carries the messages.
    """

    def __init__(self, engine: Messages) -> None:
        self._engine = engine
        self.rank, self.size = engine.global_rank, engine.world_size

    @property
    def leads(self) -> bool:
        """Whether this process writes files and talks to the user."""
        return self.rank == 0

    def total(self, x: Tensor) -> Tensor:
        """The sum over all processes; ``x`` is not changed, and no gradient flows."""
        try:
            summed: Tensor = self._engine.all_reduce(x.detach().clone(), reduce_op="sum")
        except RuntimeError as error:  # the connections of a process that ends are closed
            raise LostProcessError(
                "Another process of this run has ended, so this one stops too; "
                "go on with `wrssl fit --resume RUN` and the same options."
            ) from error
        return summed

    def largest(self, number: int) -> int:
        """The largest of the non-negative numbers that the processes have."""
        numbers = torch.zeros(self.size)
        numbers[self.rank] = number
        return int(self.total(numbers).max())

    def from_leader(self, value: Any) -> Any:
        """The value of the leading process: for what depends on clocks or on files."""
        return self._engine.broadcast(value)

    def add_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Replace each gradient by its sum over the processes, in one message; a missing one counts as zero."""
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        if not parts:
            return
        flat = self.total(torch.cat([part.reshape(-1) for part in parts]))
        for parameter, values in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = values.view_as(parameter).clone()


def own_rows(size: int, rank: int, processes: int) -> slice:
    """The rows of a batch of ``size`` that belong to process ``rank``: equal parts up to one row."""
    return slice(size * rank // processes, size * (rank + 1) // processes)


def spread_rows(group: Group, x: Tensor, run: Callable[[Tensor, Part | None], Tensor]) -> Tensor:
    """``run`` on all rows of ``x``, each row in one process; returns the output of all rows in every process.

    Args:
        group: the processes; all of them call this with the same ``x``.
        x: the batch.
        run: from rows of ``x``, and the part of the batch that they are, to one row of output each.
    """
    if len(x) < group.size:  # too few to share: every process runs all of them, and each counts for its share
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
    """The rows of this process."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, rows: slice) -> Tensor:
        ctx.group, ctx.rows, ctx.size = group, rows, len(x)
        return x[rows].clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.group.total(_placed(grad, ctx.rows, ctx.size)), None, None


class _All(torch.autograd.Function):
    """The rows of all processes, from those of this one."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, group: Group, rows: slice, size: int) -> Tensor:
        ctx.rows = rows
        return group.total(_placed(h, rows, size))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return grad[ctx.rows].clone(), None, None, None


class _Add(torch.autograd.Function):
    """A sum over all processes."""

    @staticmethod
    def forward(ctx: Any, sums: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.total(sums)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.group.total(grad), None


class _Shared(torch.autograd.Function):
    """What every process has computed in full: its gradient is divided by their number, since it is summed later."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, size: int) -> Tensor:
        ctx.size = size
        return h.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return grad / ctx.size, None
