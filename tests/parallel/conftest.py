"""Processes for tests: threads that exchange tensors where processes would exchange messages."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch

from wrssl.parallel import Group


class Engine:
    """What Fabric does, among threads of one process."""

    def __init__(self, rank: int, barrier: Barrier, table: list[Any]) -> None:
        self.global_rank, self.world_size = rank, len(table)
        self._barrier, self._table = barrier, table

    def _exchange(self, value: Any) -> list[Any]:
        self._table[self.global_rank] = value
        self._barrier.wait(30)
        everything = list(self._table)
        self._barrier.wait(30)
        return everything

    def all_reduce(self, data: torch.Tensor, group: Any = None, reduce_op: str = "mean") -> torch.Tensor:
        assert reduce_op == "sum"
        return torch.stack(self._exchange(data)).sum(0)

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        return self._exchange(obj)[src]


@pytest.fixture
def processes() -> Callable[..., list[Any]]:
    """``processes(n, f)``: what f(group) gives in each of n processes."""

    def run(size: int, f: Callable[[Group], Any]) -> list[Any]:
        barrier, table = Barrier(size), [None] * size

        def one(rank: int) -> Any:
            try:
                return f(Group(Engine(rank, barrier, table)))
            except BaseException:
                barrier.abort()
                raise

        with ThreadPoolExecutor(size) as pool:
            return list(pool.map(one, range(size)))

    return run
