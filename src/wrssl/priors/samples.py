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
    """Rows of the reference, whose classes are known, and rows of the pool; columns have mean 0 and variance 1."""

    known: Matrix
    labels: NDArray[np.int64]
    pool: Matrix


# Fits a score, high where a row looks like the reference and low where it looks like what only the pool holds.
Kind: TypeAlias = Callable[[Samples, int], Score]
