"""Data frames become numbers: compared with a computation that knows nothing of the encoder."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import statistics
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from wrssl.data.frames import FrameEncoder, TableScale
from wrssl.errors import DataError, OptionError

ROWS = 24  # enough labeled values to say what the scale is


def numbers(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, rows]).normal(3, 2, rows)


def by_hand(x: float, values) -> float:
    """3 tanh(z / 3), with the population's standard deviation."""
    values = [float(v) for v in values]
    return 3 * math.tanh((x - statistics.fmean(values)) / statistics.pstdev(values) / 3)


def encoded(labeled, pool, new=None, **options) -> tuple[list[str], np.ndarray]:
    encoder = FrameEncoder.fit(pd.DataFrame(labeled), None if pool is None else pd.DataFrame(pool), **options)
    rows = encoder.transform(pd.DataFrame(labeled if new is None else new))
    assert rows.dtype == np.float32
    assert rows.shape[1] == len(encoder.feature_names)
    return encoder.feature_names, rows


def one(labeled, pool, new=None, **options) -> tuple[list[str], list[list[float]]]:
    """A table with the single column ``c``."""
    names, rows = encoded({"c": labeled}, {"c": pool}, None if new is None else {"c": new}, **options)
    return names, rows.tolist()


def test_numbers_are_scaled_by_the_labeled_rows():
    own = numbers(ROWS)
    names, rows = one(own, numbers(50, 1), [0.0, 5.0, 1e9])
    assert names == ["c"]
    assert [row[0] for row in rows] == pytest.approx([by_hand(x, own) for x in (0.0, 5.0, 1e9)], rel=1e-6)


def test_a_foreign_pool_cannot_move_what_belongs():
    own = numbers(ROWS)
    calm, wild = one(own, numbers(50, 1)), one(own, 1e6 * numbers(50, 1) - 1e7)
    assert calm == wild
    # Nor can it run away: whatever comes, no value is beyond 3.
    _, rows = one(1e-9 * own, numbers(50, 1), [-1.7e308, 1.7e308])
    assert rows == [[-3.0], [3.0]]
    largest = one([-1.7e308, 1.7e308] * 15, own, [1.7e308])[1]
    assert largest == [[pytest.approx(by_hand(1, [-1, 1]))]]


def test_larger_stays_larger():
    own = numbers(ROWS)
    new = np.linspace(own.mean() - 15 * own.std(), own.mean() + 15 * own.std(), 300)
    assert (np.diff(np.array(one(own, own, new)[1])[:, 0]) > 0).all()


@pytest.mark.parametrize(("rows", "alone"), [(4, False), (5, True)])
def test_few_labeled_values_ask_the_pool(rows, alone):
    own, pool = numbers(rows), 10 + numbers(30, 1)
    expected = by_hand(4.0, own if alone else [*own, *pool])
    assert one(own, pool, [4.0])[1] == [[pytest.approx(expected, rel=1e-6)]]


def test_a_column_that_never_changes_says_nothing():
    assert one([0.1] * 30, [0.1] * 7, [0.1, 5.0, -1e300]) == (["c"], [[0.0]] * 3)
    # Constant among the labels only: all rows decide.
    own, pool = [0.1] * 30, [0.1, 0.3]
    assert one(own, pool, [0.3])[1] == [[pytest.approx(by_hand(0.3, [*own, *pool]), rel=1e-6)]]


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_sizes_at_the_end_of_the_range(unit):
    own = numbers(ROWS)
    assert np.array(one(own * unit, own * unit)[1]) == pytest.approx(np.array(one(own, own)[1]), rel=1e-6)


def test_small_differences_of_large_numbers():
    own = numbers(ROWS)
    exact = (own + 2.0**33) - 2.0**33  # what of them is left in such company
    new = [float(exact[0]), float(exact[1])]
    far = one(own + 2.0**33, own, [x + 2.0**33 for x in new])[1]
    assert np.array(far) == pytest.approx(np.array(one(exact, own, new)[1]), abs=1e-5)


def test_missing_numbers():
    own = [*numbers(ROWS), None, math.inf]
    names, rows = one(own, [1.0], [2.0, None, -math.inf])
    assert names == ["c", "c (missing)"]
    assert rows == [[pytest.approx(by_hand(2.0, own[:ROWS]), rel=1e-6), 0.0], [0.0, 1.0], [0.0, 1.0]]
    # Missing in the pool counts too; a cell that is missing for the first time later is the mean and no more.
    assert one(own[:ROWS], [None, 1.0])[0] == ["c", "c (missing)"]
    assert one(own[:ROWS], [1.0], [None, 2.0])[1][0] == [0.0]


def test_booleans_stay_zero_and_one():
    own = [True, False, False, False] * 6
    assert one(own, [True] * 90, [True, False]) == (["c"], [[1.0], [0.0]])
    names, rows = one([*own, None], [True] * 90, [True, False, None])
    assert names == ["c", "c (missing)"]
    assert rows == [[1.0, 0.0], [0.0, 0.0], [0.25, 1.0]]  # the mean of the labeled rows


def test_categories_of_both_parts():
    names, rows = one(["b", "a", "b"], ["c", "a"], ["a", "b", "c", "d"])
    assert names == ["c=a", "c=b", "c=c"]
    assert rows == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_missing_categories():
    names, rows = one(["b", None, "a"], ["a"], ["a", None, "new", ""])
    assert names == ["c=a", "c=b", "c (missing)"]
    assert rows == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert one(["b", "a"], ["a"], [None])[1] == [[0, 0]]


def test_of_many_categories_those_of_the_labels_come_first():
    own, pool = ["rare", "often", "often"], ["x"] * 9 + ["y"] * 8 + ["z", None]
    names, rows = one(own, pool, ["often", "x", "y", "z", "new", None], limit=3)
    assert names == ["c=often", "c=rare", "c=x", "c (other)", "c (missing)"]
    assert [row.index(1.0) for row in rows] == [0, 2, 3, 3, 3, 4]
    assert {sum(row) for row in rows} == {1.0}
    # Of more labeled categories than there is room for, the frequent ones.
    assert one(own, pool, limit=1)[0] == ["c=often", "c (other)", "c (missing)"]
    many = [f"{number:03}" for number in range(60)]
    assert len(one(many, many)[0]) == 51


def test_dates_are_seconds():
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(days=d, hours=d % 5) for d in range(ROWS)]
    seconds = [(day - dt.datetime(1970, 1, 1)).total_seconds() for day in days]
    new = dt.datetime(2020, 2, 3, 4, 5, 6)
    expected = by_hand((new - dt.datetime(1970, 1, 1)).total_seconds(), seconds)
    names, rows = one(days, days[:3], [new, None])
    assert names == ["c"]
    assert rows == [[pytest.approx(expected, rel=1e-5)], [0.0]]
    # The same moment told otherwise: with a zone, as a date, as text.
    berlin = dt.timezone(dt.timedelta(hours=1))
    aware = new.replace(tzinfo=dt.timezone.utc).astimezone(berlin)
    assert one(days, days[:3], [aware])[1] == rows[:1]
    assert one(days, days[:3], ["2020-02-03T04:05:06", "2020-01-01"])[1] == one(days, days, [new, days[0]])[1]
    dates = [day.date() for day in days]
    assert one(dates, dates[:2], [dt.datetime(2020, 1, 5)])[1] == one(dates, dates, [dt.date(2020, 1, 5)])[1]
    periods = pd.period_range("2020-01", periods=ROWS, freq="M")
    assert one(periods, periods[:2], periods[:2])[1] == one(periods.to_timestamp(), periods[:2], periods[:2])[1]


def test_the_same_numbers_in_other_types_are_the_same():
    whole = [round(10 * x) for x in numbers(ROWS)]
    plain = one(whole, whole[:5], whole)
    for other in (
        pd.array(whole, dtype="Int64"),
        np.array(whole, dtype=np.float32),
        np.array(whole, dtype=object),
        [decimal.Decimal(x) for x in whole],
        [str(x) for x in whole],
    ):
        assert one(whole, whole[:5], other) == plain
        assert one(whole, other[:5], whole) == plain
        if not isinstance(other[0], str):  # text in both parts would be categories
            assert one(other, other[:5], whole) == plain
    assert one(whole, whole[:5], pd.Categorical(whole)) == plain
    assert one(whole, [None] * 4, whole) == (["c", "c (missing)"], [[*row, 0.0] for row in plain[1]])
    delta = pd.to_timedelta(whole, unit="s")
    assert one(delta, delta[:5], delta) == plain
    flags = [x % 2 == 0 for x in whole]
    assert one(flags, whole[:5], flags)[1] == one([int(f) for f in flags], whole[:5], flags)[1]


def test_the_same_categories_in_other_types_are_the_same():
    expected = ["c=1", "c=2", "c=x"], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    for labeled, pool, new in (
        (["1", "2"], ["x"], ["1", "2", "x"]),
        ([1, 2], ["x", "1"], [1, "2", "x"]),
        ([1.0, 2.0], ["x"], ["1", 2.0, "x"]),
        (pd.Categorical([1, 2]), pd.Categorical(["x"]), pd.Categorical(["1", "2", "x"])),
    ):
        assert one(labeled, pool, new) == expected
    assert one(pd.Categorical([1, 2]), [3, 3], [3])[1] == [[0, 0, 1]]  # numbers, but declared as categories


def test_a_column_without_any_value_is_a_constant():
    assert one([None, None], [None], [None, 4.0]) == (["c", "c (missing)"], [[0, 1], [0, 0]])


TABLE = {
    "age": [*numbers(ROWS), None],
    "city": ["Köln", 'a "quote"', None, "x", "y"] * 5,
    3: [True, None, False, True, True] * 5,
    "since": [dt.datetime(2020, 1, 1 + d) for d in range(25)],
}


def test_columns_go_by_name():
    frame = pd.DataFrame(TABLE)
    other_way = frame[frame.columns[::-1]]
    encoder = FrameEncoder.fit(frame, other_way.iloc[:7])
    assert encoder == FrameEncoder.fit(frame, frame.iloc[:7])
    assert np.array_equal(encoder.transform(other_way), encoder.transform(frame))
    # Rows go by position, whatever their index says, and their order does not matter for the encoder.
    shuffled = frame.sample(frac=1, random_state=0)
    assert encoder.to_json()["columns"][1] == FrameEncoder.fit(shuffled, frame.iloc[:7]).to_json()["columns"][1]
    assert np.array_equal(encoder.transform(shuffled), encoder.transform(frame)[shuffled.index])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.drop(columns=["age"]), "lacks the column 'age'; give all tables the same columns."),
        (lambda f: f.assign(more=1, extra=2), "has the unknown columns 'more', 'extra'"),
        (lambda f: f.rename(columns={"age": "Age"}), "lacks the column 'age' and has the unknown column 'Age'"),
        (lambda f: f.rename(columns={"age": "city"}), "several columns 'city'"),
        (lambda f: f.rename(columns={"age": 1.5}), "column name 1.5"),
        (lambda f: f.to_numpy(), "pandas data frame, not ndarray"),
    ],
)
def test_tables_that_do_not_fit(change, words):
    frame = pd.DataFrame(TABLE)
    with pytest.raises(DataError, match=words):
        FrameEncoder.fit(frame, frame).transform(change(frame))
    with pytest.raises(DataError, match=words.replace("unknown", "")[:5]):
        FrameEncoder.fit(frame, change(frame))


@pytest.mark.parametrize(
    ("labeled", "pool", "new", "words"),
    [
        ([1.0, 2.0], [3.0], ["n/a"], "Column 'c' should hold numbers, but one cell is 'n/a'"),
        ([[1], [2]], [[3]], None, "Column 'c' holds lists"),
        ([1j], [2j], None, "Column 'c' holds values of the type complex"),
        ([dt.datetime(2020, 1, 1)], [5], None, "Column 'c' holds dates in one part and numbers in another"),
        ([dt.datetime(2020, 1, 1)], ["soon"], None, "should hold dates, but one cell is 'soon'"),
        ([dt.datetime(2020, 1, 1)], [None], [5], "should hold dates, but it holds numbers"),
        ([], [1], None, "labeled table is empty"),
    ],
)
def test_cells_that_do_not_fit(labeled, pool, new, words):
    with pytest.raises(DataError, match=words):
        one(labeled, pool, new)


@pytest.mark.parametrize("limit", [0, 2.5, True])
def test_limit(limit):
    with pytest.raises(OptionError, match="limit"):
        one(["a"], ["b"], limit=limit)


def test_stored_as_json():
    frame = pd.DataFrame(TABLE)
    encoder = FrameEncoder.fit(frame, frame.iloc[:3], limit=2)
    again = FrameEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert again.feature_names == encoder.feature_names
    assert np.array_equal(again.transform(frame), encoder.transform(frame))


@pytest.mark.parametrize("value", [{}, {"format": 1}, {"format": 1, "columns": [{"kind": "number"}]}, None])
def test_json_of_something_else(value):
    with pytest.raises(DataError, match="does not describe"):
        FrameEncoder.from_json(value)


def test_json_of_another_version():
    with pytest.raises(DataError, match="rules number 99"):
        FrameEncoder.from_json({"format": 99, "columns": []})


def test_arrays_are_scaled_by_the_same_rule():
    labeled, pool = (np.random.default_rng(seed).normal(seed, 3, (30, 4)) for seed in (1, 2))
    labeled[:, 2], pool[:, 3], labeled[:, 3] = 7.0, 1.0, 1.0
    scale = TableScale.fit(labeled, pool)
    encoder = FrameEncoder.fit(pd.DataFrame(labeled), pd.DataFrame(pool))
    assert np.array_equal(scale.transform(pool), encoder.transform(pd.DataFrame(pool)))
    assert scale.transform(pool).dtype == np.float32
    assert TableScale.fit(labeled, pool[:0]).transform(pool)[:, 3].tolist() == [0.0] * 30


def test_pandas_is_loaded_when_it_is_needed():
    code = "import sys, wrssl.data.frames; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
