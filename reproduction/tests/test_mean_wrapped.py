"""Mean images as the published code adds them up, a kind of foreign rows that is registered from here."""

from __future__ import annotations

import numpy as np

from wrssl.data import list_scenarios, pairs_of_taken
from wrssl_reproduction import run  # noqa: F401  (registers it)
from wrssl_reproduction.published_code import wrapped_mean_of_two

FIRST = np.array([200, 200, 255, 255, 100], dtype=np.uint8)
SECOND = np.array([200, 100, 255, 0, 0], dtype=np.uint8)


def mean_of_two(first, second):
    return ((first.astype(int) + second) // 2).astype(np.uint8)


def test_it_is_a_kind_of_mnist():
    assert "mean-wrapped" in list_scenarios()["mnist"]


def test_wrapped_means_are_what_eight_bits_give():
    wrapped = wrapped_mean_of_two(FIRST, SECOND)
    assert wrapped.tolist() == [72, 22, 127, 127, 50]
    assert wrapped.dtype == np.uint8
    dark = FIRST // 2, SECOND // 2  # sums below 256 do not wrap
    assert np.array_equal(wrapped_mean_of_two(*dark), mean_of_two(*dark))


def test_wrapped_means_are_made_of_the_pairs_of_the_means():
    rng = np.random.default_rng(0)
    taken, labels = rng.integers(0, 256, (30, 1, 4, 4), dtype=np.uint8), np.arange(30) % 5
    kinds = pairs_of_taken("mean", 0, mean_of_two), pairs_of_taken("wrapped", 0, wrapped_mean_of_two)
    means, wrapped = (kind.draw(30, taken, labels) for kind in kinds)
    assert np.array_equal(wrapped, np.where(means > 127, means - 128, means))
