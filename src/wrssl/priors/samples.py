"""What a prior is fitted to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float32]
Score: TypeAlias = Callable[[Matrix], NDArray[np.float64]]


@dataclass(frozen=True)
class Samples:
    """Rows of the reference, whose classes are known, and rows of the pool, in the units of ``standard.py``.

    Attributes:
        whole: all rows of the reference where ``known`` are those outside a fold.
    """

    known: Matrix
    labels: NDArray[np.int64]
    pool: Matrix
    whole: Matrix | None = None

    @property
    def everybody(self) -> Matrix:
        """All rows of the reference, for what must be the same in all folds and needs no score."""
        return self.known if self.whole is None else self.whole


def shuffled(size: int, random: np.random.Generator) -> NDArray[np.int32] | NDArray[np.int64]:
    """``random.permutation(size)``, number by number, in half of its memory where the numbers allow it."""
    order = np.arange(size, dtype=np.int32 if size <= np.iinfo(np.int32).max else np.int64)
    random.shuffle(order)  # draws the same whatever the type is
    return order


# Fits a score, high where a row looks like the reference and low where it looks like what only the pool holds.
Kind: TypeAlias = Callable[[Samples, int], Score]
