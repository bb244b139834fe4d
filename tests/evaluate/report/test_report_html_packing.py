"""Columns and names in little space, and nothing lost on the way."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wrssl.evaluate.report.pool import (
    SCALE,
    front_coded,
    names_of,
    packed,
    rounded,
    rounded_down,
    script_json,
    unpacked,
)


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(0, 100))
def test_a_threshold_keeps_the_members_that_the_full_table_keeps(weight, hundredths):
    q = int(rounded_down(np.array([weight]))[0])
    assert (q >= hundredths * (SCALE // 100)) == (weight >= hundredths / 100)


@pytest.mark.parametrize("hundredths", range(101))
def test_the_thresholds_themselves_are_kept_and_what_lies_just_below_is_not(hundredths):
    exact = hundredths / 100
    assert rounded_down(np.array([exact]))[0] == hundredths * (SCALE // 100)
    if hundredths:
        assert rounded_down(np.array([np.nextafter(exact, 0)]))[0] == hundredths * (SCALE // 100) - 1


def test_other_numbers_are_rounded_to_the_nearest_and_nan_is_zero():
    assert rounded(np.array([0.12345, 0.99996, 1.0, np.nan])).tolist() == [1234, 10000, 10000, 0]


@pytest.mark.parametrize(("values", "size"), [([0, 255], 1), ([0, 256, 10000], 2), ([], 1)])
def test_columns_come_back(values, size):
    column = packed(np.array(values, dtype=np.int64))
    assert column["bytes"] == size
    assert unpacked(column).tolist() == values
    json.dumps(column)


@settings(deadline=None)
@given(st.lists(st.text(max_size=12), max_size=12))
def test_names_come_back(names):
    assert names_of(front_coded(names), len(names)) == names


def test_what_names_share_is_written_once():
    names = [f"folder/sub-folder/image-{k:06d}.png" for k in range(1000)]
    assert len(json.dumps(front_coded(names))) < 0.5 * len(json.dumps(names))


def test_shared_characters_are_counted_as_a_browser_counts_them():
    assert front_coded(["\U0001d518a", "\U0001d518b"]) == [0, "\U0001d518a", 2, "b"]


def test_names_that_are_numbers_in_a_row_need_no_list():
    assert names_of(None, 3) == ["0", "1", "2"]


def test_json_in_a_script_cannot_end_the_script():
    written = script_json({"name": "</script><!--&\u2028\u2029", "n": [1, None]})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {"name": "</script><!--&\u2028\u2029", "n": [1, None]}
