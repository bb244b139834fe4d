"""Columns in few bytes: the smallest types that hold what they are to hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.evaluate.verdicts import identifiers, label_column, smallest_whole, whole_numbers


@pytest.mark.parametrize(
    ("low", "high", "want"),
    [
        (0, 0, "int16"),
        (-(2**15), 2**15 - 1, "int16"),
        (0, 2**15, "int32"),
        (-(2**15) - 1, 0, "int32"),
        (0, 2**31 - 1, "int32"),
        (0, 2**31, "int64"),
        (-(2**63), 2**63 - 1, "int64"),
        (0, 2**63, "uint64"),
    ],
)
def test_the_smallest_type_that_holds_both_ends(low, high, want):
    assert smallest_whole(low, high) == want


def test_a_type_may_be_asked_for():
    assert smallest_whole(0, 1, np.int8) == "int8"
    assert smallest_whole(0, 128, np.int8) == "int16"
    assert smallest_whole(0, 1, np.int32) == "int32"
    assert smallest_whole(0, 2**40, np.int32) == "int64"


@pytest.mark.parametrize(
    "ids", [range(5), range(7, 2, -1), range(0), range(2**31 - 3, 2**31 + 3), range(-4, 4, 2)], ids=str
)
def test_numbers_in_a_row(ids):
    found = identifiers(ids, len(ids))
    assert found.tolist() == list(ids)
    assert found.dtype == (np.int64 if 2**31 in ids else np.int32)


@pytest.mark.parametrize(
    ("values", "want"), [([0, 19], "int16"), ([0, 40_000], "int32"), ([], "int16"), ([-1, 2**40], "int64")], ids=str
)
def test_clusters_by_their_largest_number(values, want):
    found = whole_numbers(torch.tensor(values, dtype=torch.int64), len(values), np.int16)
    assert found.tolist() == values
    assert found.dtype == want


@pytest.mark.parametrize(
    ("names", "want"),
    [
        ([3, 5, 8], "int16"),
        ([-7, 70_000], "int32"),
        ([0, 2**40], "int64"),
        ([0.5, 1.5, 2.0], "float64"),
        ([False, True], "bool"),
        (["b", "a longer one", "c"], "category"),
        ([f"class {k:03d}" for k in range(300)], "category"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} of {type(value[0]).__name__}",
)
def test_names_of_classes(names, want):
    import pandas as pd

    column, indices = label_column(np.array(names), len(names) + 1), np.arange(len(names))[::-1]
    column.fill(slice(1, None), indices)
    column.fill(slice(0, 1), np.array([0]))
    series = pd.Series(column.column())
    assert series.tolist() == [names[0], *names[::-1]]
    assert str(series.dtype) == want


def test_words_take_a_byte_each_up_to_127_classes():
    assert label_column(np.array([f"{k}" for k in range(127)]), 1).values.itemsize == 1
    assert label_column(np.array([f"{k}" for k in range(129)]), 1).values.itemsize == 2
