"""Rows that are told apart: normal ones, and a toy example in which every kind can see who is foreign."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from wrssl.priors.samples import Samples


@pytest.fixture(autouse=True)
def nobody_touches_a_global_generator(global_rng_untouched):
    """Every test of this folder runs with it."""


def draw(rows: int, columns: int, seed: int) -> NDArray[np.float32]:
    """Independent standard normal numbers."""
    return np.random.default_rng([seed, rows, columns]).standard_normal((rows, columns), dtype=np.float32)


@pytest.fixture
def normal() -> Callable[..., NDArray[np.float32]]:
    return draw


@pytest.fixture
def toy() -> Callable[..., tuple[Samples, NDArray[np.float32], NDArray[np.float32]]]:
    """Samples, and fresh rows of either sort. Own rows belong to a class at −1 or +1 in the first column, foreign ones
    lie between the classes (the energy sees it) and elsewhere in the second column (the others see it)."""

    def make(n: int = 60, m: int = 240, seed: int = 0) -> tuple[Samples, NDArray[np.float32], NDArray[np.float32]]:
        def own(count: int, number: int) -> NDArray[np.float32]:
            rows = np.float32(0.2) * draw(count, 3, number)
            rows[:, 0] += np.where(np.arange(count) % 2, 1, -1)
            rows[:, 1] += 1
            return rows

        def foreign(count: int, number: int) -> NDArray[np.float32]:
            rows = np.float32(0.2) * draw(count, 3, number)
            rows[:, 1] -= 1
            return rows

        pool = np.concatenate([own(m // 2, 10 * seed + 1), foreign(m // 2, 10 * seed + 2)])
        samples = Samples(own(n, 10 * seed + 3), np.arange(n) % 2, pool)
        return samples, own(100, 10 * seed + 4), foreign(100, 10 * seed + 5)

    return make
