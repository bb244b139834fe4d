"""A batch of which this process holds some rows: what its statistics need of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Part(NamedTuple):
    """Which rows of the joint batch are here, and how sums over them become sums over all.

    Args:
        rows: those that are here.
        size: of the joint batch.
        add: the sum of a tensor over all processes, known to autograd: what comes back is the sum of the gradients.
    """

    rows: slice
    size: int
    add: Callable[[Tensor], Tensor]


def alone(x: Tensor) -> Tensor:
    """The sum over the only process."""
    return x
