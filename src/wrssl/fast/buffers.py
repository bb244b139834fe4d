"""Memory that is used again.

A fresh tensor of a megabyte costs more than most operations that fill it: the operating system hands out its pages one
by one, at the first touch of each. A training step needs the same shapes every time, so they are kept.
"""

from __future__ import annotations

import torch
from torch import Tensor

Key = tuple[tuple[int, ...], torch.dtype, float | None]


class Buffers:
    """The tensors that are free now; ``lease`` lends them."""

    def __init__(self) -> None:
        self.free: dict[Key, list[Tensor]] = {}

    def lease(self) -> Lease:
        """Somebody who may take tensors and gives all of them back at the end of its life."""
        return Lease(self)


class Lease:
    """Tensors that belong to one computation as long as this object lives.

    An autograd context holds a lease, so that what backward needs is not handed out again before its graph is gone,
    however often backward runs. Nothing taken from a lease may outlive it, views included.
    """

    def __init__(self, buffers: Buffers) -> None:
        self._buffers, self._taken = buffers, list[tuple[Key, Tensor]]()

    def take(self, like: Tensor, *shape: int, filled: float | None = None) -> Tensor:
        """A tensor of this shape with anything in it.

        With ``filled`` it holds this number when new, and comes from a shelf of its own: who writes the same places of
        it every time finds the others as they were.
        """
        key = (shape, like.dtype, filled)
        shelf = self._buffers.free.get(key)
        if shelf is None:
            shelf = self._buffers.free[key] = []
        tensor = shelf.pop() if shelf else _new(like, shape, filled)
        self._taken.append((key, tensor))
        return tensor

    def __del__(self) -> None:
        for key, tensor in self._taken:
            self._buffers.free[key].append(tensor)


def _new(like: Tensor, shape: tuple[int, ...], filled: float | None) -> Tensor:
    return like.new_empty(shape) if filled is None else like.new_full(shape, filled)
