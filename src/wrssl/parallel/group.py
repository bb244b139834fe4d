"""The processes of one run, as the rest of the package sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from wrssl.api import WRSSLError


class Messages(Protocol):
    """What a group needs of an engine; Lightning's Fabric has it."""

    global_rank: int
    world_size: int

    def all_reduce(self, data: Any, group: Any = None, reduce_op: str = "mean") -> Any:
        """The sum over all processes."""

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        """What process ``src`` has."""


class LostProcessError(WRSSLError):
    """Another process of the run has ended, so that this one cannot go on."""

    said_by_the_first = True  # so the others need not say it too


class Group:
    """Processes that do the same steps on the same batches.

    Args:
        engine: who carries the messages.
    """

    def __init__(self, engine: Messages) -> None:
        self._engine = engine
        self.rank, self.size = engine.global_rank, engine.world_size

    @property
    def leads(self) -> bool:
        """Whether this process writes files and talks to the user."""
        return self.rank == 0

    def total(self, x: Tensor) -> Tensor:
        """The sum over all processes; ``x`` stays as it is, and no gradient flows."""
        try:
            summed: Tensor = self._engine.all_reduce(x.detach().clone(), reduce_op="sum")
        except RuntimeError as error:  # the others are gone: connections are closed
            raise LostProcessError(
                "Another process of this run has ended, so this one stops too; "
                "go on with `wrssl fit --resume RUN` and the same options."
            ) from error
        return summed

    def largest(self, number: int) -> int:
        """The largest of the numbers, from 0 on, that the processes have."""
        numbers = torch.zeros(self.size)
        numbers[self.rank] = number
        return int(self.total(numbers).max())

    def from_leader(self, value: Any) -> Any:
        """What the leading process has: for what depends on clocks or on files."""
        return self._engine.broadcast(value)

    def add_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Replace each gradient by its sum over the processes, in one message; a missing one counts as zero."""
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        if not parts:
            return
        flat = self.total(torch.cat([part.reshape(-1) for part in parts]))
        for parameter, values in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = values.view_as(parameter).clone()
