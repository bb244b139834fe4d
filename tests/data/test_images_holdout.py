"""Which labels are held out for validation."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.data.images.holdout import automatic, by_share, check_share, hold_out
from wrssl.errors import OptionError


def rows(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (number, 3, 4, 4), dtype=np.uint8)


@pytest.mark.parametrize(
    ("sizes", "held"),
    [
        ([120, 120], [30, 30]),
        ([120, 119], [0, 0]),
        ([20, 240, 19], [5, 60, 4]),
        ([12, 400], [0, 0]),
        ([13, 400], [3, 100]),
        ([1, 1], [0, 0]),
        ([1000, 1001], [250, 250]),
    ],
)
def test_the_automatic_rule(sizes, held):
    assert automatic(sizes) == held


def test_a_share_leaves_something_on_both_sides_where_it_can():
    assert by_share([0, 1, 2, 3, 10, 100], 0.2) == [0, 0, 1, 1, 2, 20]
    assert by_share([2, 10], 0.99) == [1, 9]
    assert by_share([2, 10], 0.0) == [0, 0]


@pytest.mark.parametrize("wrong", [1, 1.0, -0.1, float("nan"), True, False, [0.2], 5])
def test_shares_that_are_none(wrong):
    with pytest.raises(OptionError, match="validation must be a folder, a share"):
        check_share(wrong)
    assert [check_share(good) for good in (0, 0.0, np.float32(0.5))] == [0.0, 0.0, 0.5]


def test_each_class_gives_its_part_by_seed():
    labels = np.array(["a"] * 20 + ["b"] * 40)
    held, different = hold_out(rows(60), labels, 0.25, 0)
    assert (held[:20].sum(), held[20:].sum()) == (5, 10)
    assert different == {"a": 20, "b": 40}
    assert np.array_equal(held, hold_out(rows(60), labels, 0.25, 0)[0])
    assert not np.array_equal(held, hold_out(rows(60), labels, 0.25, 1)[0])
    assert not hold_out(rows(60), labels, 0, 0)[0].any()
    twenty = hold_out(rows(40), labels[:40], 0.25, 0)[0]
    assert not np.array_equal(twenty[:20], twenty[20:])  # not the same places in each class
    # More labels of one class leave the choice in the other as it is.
    more = np.concatenate([rows(60), rows(7)])
    assert np.array_equal(hold_out(more, np.append(labels, ["b"] * 7), 0.25, 0)[0][:20], held[:20])


def test_what_has_a_copy_among_the_labels_is_not_held_out():
    x = rows(40)
    x[1:20:2] = x[0:20:2]  # ten pairs in class a
    labels = np.array(["a"] * 20 + ["b"] * 20)
    held, different = hold_out(x, labels, 0.9, 0)
    assert (held[:20].sum(), held[20:].sum()) == (0, 18)
    assert different == {"a": 0, "b": 20}
    assert not hold_out(x, labels, None, 0)[0].any()


def test_the_global_generators_are_left_alone(global_rng_untouched):
    hold_out(rows(40), np.array(["a", "b"] * 20), None, 0)
