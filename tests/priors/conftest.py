"""Rows that are told apart: normal ones, and a toy example in which every kind can see which ones are foreign."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from wrssl.priors import Context, Score
from wrssl.priors.kinds import kind_named


@pytest.fixture(autouse=True)
def no_global_generator_is_used(global_rng_untouched):
    """Every test of this folder runs with it."""


class Parts(NamedTuple):
    """What a kind is fitted to."""

    known: NDArray[np.float32]
    labels: NDArray[np.int64]
    pool: NDArray[np.float32]


def draw(rows: int, columns: int, seed: int) -> NDArray[np.float32]:
    """Independent standard normal numbers."""
    return np.random.default_rng([seed, rows, columns]).standard_normal((rows, columns), dtype=np.float32)


@pytest.fixture
def normal() -> Callable[..., NDArray[np.float32]]:
    return draw


@pytest.fixture
def parts() -> type[Parts]:
    return Parts


@pytest.fixture
def fitted() -> Callable[..., Score]:
    """The score of a kind, by its name, with these parts and this seed; all references are those of the parts."""

    def fit(name: str, parts: Parts, seed: int = 0) -> Score:
        return kind_named(name)(*parts, Context(seed, parts.known))

    return fit


@pytest.fixture
def toy() -> Callable[..., tuple[Parts, NDArray[np.float32], NDArray[np.float32]]]:
    """Parts, and fresh rows of either sort. Own rows belong to a class at −1 or +1 in the first column, foreign ones
    lie between the classes (the energy sees it) and elsewhere in the second column (the others see it)."""

    def make(n: int = 60, m: int = 240, seed: int = 0) -> tuple[Parts, NDArray[np.float32], NDArray[np.float32]]:
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
        parts = Parts(own(n, 10 * seed + 3), np.arange(n) % 2, pool)
        return parts, own(100, 10 * seed + 4), foreign(100, 10 * seed + 5)

    return make
