from __future__ import annotations

import numpy as np
import pytest

from wrssl.data.pairs import different_pairs, mean_of_taken, mean_of_two, pairs_of_taken
from wrssl.data.sources.mean_wrapped import wrapped_mean_of_two
from wrssl.errors import DataError


@pytest.mark.parametrize(("size", "number"), [(500, 500), (500, 250), (40, 600), (3, 3)])
def test_pairs_are_distinct_and_of_different_classes(size, number):
    labels = np.arange(size) % 10
    pairs = different_pairs(labels, number, 0)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == number
    assert all(labels[a] != labels[b] for a, b in pairs)


def test_all_possible_pairs_can_be_had_and_no_more():
    labels = np.array([0, 0, 1, 1, 2])
    assert len(different_pairs(labels, 8, 0)) == 8
    with pytest.raises(DataError, match=r"9 mean images .* give 8; use a larger ratio"):
        different_pairs(labels, 9, 0)
    for size in (0, 1, 2):
        with pytest.raises(DataError, match="mean images need"):
            different_pairs(np.arange(size), size + 1, 0)


def test_pairs_of_a_lower_ratio_are_a_prefix():
    # Mixing takes rows out from the end: the taken rows of a lower ratio are the last ones of a higher one.
    labels = np.random.default_rng(0).integers(0, 10, 400)
    high = different_pairs(labels, 400, 7)
    low = different_pairs(labels[250:], 150, 7)
    assert [(a + 250, b + 250) for a, b in low] == high[:150]


FIRST = np.array([200, 200, 255, 255, 100], dtype=np.uint8)
SECOND = np.array([200, 100, 255, 0, 0], dtype=np.uint8)


def test_means_do_not_overflow():
    means = mean_of_two(FIRST, SECOND)
    assert means.tolist() == [200, 150, 255, 127, 50]
    assert means.dtype == np.uint8


def test_wrapped_means_are_what_eight_bits_give():
    wrapped = wrapped_mean_of_two(FIRST, SECOND)
    assert wrapped.tolist() == [72, 22, 127, 127, 50]
    assert wrapped.dtype == np.uint8
    dark = FIRST // 2, SECOND // 2  # sums below 256 do not wrap
    assert np.array_equal(wrapped_mean_of_two(*dark), mean_of_two(*dark))


def test_wrapped_means_are_made_of_the_pairs_of_the_means():
    rng = np.random.default_rng(0)
    taken, labels = rng.integers(0, 256, (30, 1, 4, 4), dtype=np.uint8), np.arange(30) % 5
    kinds = mean_of_taken(0), pairs_of_taken("wrapped", 0, wrapped_mean_of_two)
    means, wrapped = (kind.draw(30, taken, labels) for kind in kinds)
    assert np.array_equal(wrapped, np.where(means > 127, means - 128, means))


def test_every_mean_image_is_the_mean_of_two_taken_images():
    rng = np.random.default_rng(0)
    taken, labels = rng.integers(0, 256, (30, 1, 4, 4), dtype=np.uint8), np.arange(30) % 5
    every = {
        ((taken[a].astype(int) + taken[b]) // 2).astype(np.uint8).tobytes()
        for a in range(30)
        for b in range(a)
        if labels[a] != labels[b]
    }
    made = mean_of_taken(0).draw(30, taken, labels)
    assert {image.tobytes() for image in made} <= every
    assert len({image.tobytes() for image in made}) == 30
