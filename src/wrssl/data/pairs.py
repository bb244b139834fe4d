"""Foreign rows made of two training rows of different classes, so that they lie close to the decision boundary.

The paper's ``mean`` images are (a + b) / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np

from wrssl.data.source import Array, Foreign
from wrssl.data.streams import numpy_stream
from wrssl.errors import DataError

_TRIES = 8


def different_pairs(labels: Array, number: int, seed: int) -> list[tuple[int, int]]:
    """``number`` distinct pairs of positions whose labels differ.

    In the first round position k gets a random earlier partner, from the end of the list: the last positions are
    those that mixing takes out first, so the pairs of a lower ratio are a prefix of those of a higher one. Further
    rounds (more pairs than positions) take any partner.

    Args:
        labels: one label per position.
        number: how many pairs.
        seed: of the partners.

    Returns:
        The pairs; too few possible ones are a ``DataError``.
    """
    size = len(labels)
    backwards = labels[::-1].tolist()
    used: dict[tuple[int, int], None] = {}
    turn = 0
    while len(used) < number:
        before = len(used)
        draws = numpy_stream(seed, f"mean pairs {turn}").random((size, _TRIES))
        for k in range(size):
            if len(used) == number:
                break
            partners = (draws[k] * (k if turn == 0 else size)).astype(np.int64).tolist()
            for j in chain(partners, range(size)):  # all positions only where no drawn partner will do
                pair = (j, k) if j < k else (k, j)
                if backwards[j] != backwards[k] and pair not in used:
                    used[pair] = None
                    break
        if len(used) == before:
            raise DataError(
                f"{number} mean images need as many pairs of images of different classes, and the {size} images "
                f"taken out of the pool give {before}; use a larger ratio, or 0."
            )
        turn += 1
    return [(size - 1 - j, size - 1 - k) for j, k in used]


def mean_of_two(first: Array, second: Array) -> Array:
    """⌊(a + b) / 2⌋ of uint8 images, computed in 16 bits: in 8 bits 200 + 200 would wrap around to 144."""
    return ((first.astype(np.uint16) + second.astype(np.uint16)) // 2).astype(np.uint8)


def pairs_of_taken(name: str, seed: int, combine: Callable[[Array, Array], Array]) -> Foreign:
    """Rows made of nothing but training rows that mixing took out of the pool, two of different classes for each.

    Args:
        name: for messages.
        seed: of the pairs, which are the same for every ``combine``.
        combine: two arrays of n rows to the n foreign rows.
    """

    def draw(number: int, taken: Array, taken_labels: Array) -> Array:
        first, second = np.array(different_pairs(taken_labels, number, seed)).T
        return combine(taken[first], taken[second])

    return Foreign(name, None, draw)


def mean_of_taken(seed: int) -> Foreign:
    """Mean images of training images that mixing took out of the pool."""
    return pairs_of_taken("mean", seed, mean_of_two)
