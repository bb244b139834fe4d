"""``mean`` images: (a + b) / 2 of two training images of different classes, close to the decision boundary."""

from __future__ import annotations

from itertools import chain

import numpy as np

from wrssl.api import DataError
from wrssl.data.parts import Array, Foreign
from wrssl.data.streams import stream

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
        draws = stream(seed, f"mean pairs {turn}").random((size, _TRIES))
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


def mean_images(images: Array, pairs: list[tuple[int, int]]) -> Array:
    """⌊(a + b) / 2⌋ for every pair, computed in 16 bits: in 8 bits 200 + 200 would wrap around to 144."""
    first, second = (images[[pair[side] for pair in pairs]].astype(np.uint16) for side in (0, 1))
    return ((first + second) // 2).astype(np.uint8)


def wrapped_images(images: Array, pairs: list[tuple[int, int]]) -> Array:
    """⌊((a + b) mod 256) / 2⌋ for every pair: what the paper's published code makes of a mean, in 8 bits.

    Where both images are bright, the result is dark (200 and 200 give 72), which no mean of two images would be.
    """
    first, second = (images[[pair[side] for pair in pairs]] for side in (0, 1))
    return (first + second) // 2  # numpy's 8-bit sums wrap around


def mean_of_taken(seed: int, wrapped: bool = False) -> Foreign:
    """Mean images made of nothing but training images that mixing took out of the pool."""
    make = wrapped_images if wrapped else mean_images

    def draw(number: int, taken: Array, taken_labels: Array) -> Array:
        return make(taken, different_pairs(taken_labels, number, seed))

    return Foreign("mean", None, draw)
