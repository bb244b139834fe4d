from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from wrssl.data.mixing import capacity, counts, mix, shares
from wrssl.data.source import Foreign, Parts, stored
from wrssl.errors import DataError, OptionError


def parts(n_id=100, *foreign: Foreign) -> Parts:
    rows = np.arange(n_id, dtype=np.float32)[:, None]
    pair = (rows[:2], np.array([0, 1]))
    return Parts(pair, rows, np.zeros(n_id), None, pair, foreign or (ood(500),), 0.1, "table", 1.0)


def ood(number: int, start: int = 1000) -> Foreign:
    return stored("ood", np.arange(start, start + number, dtype=np.float32)[:, None])


@pytest.mark.parametrize(
    ("available", "ratio", "mode", "wanted"),
    [
        ((49_900, 60_000), 0, "replace", (49_900, 0)),
        ((49_900, 60_000), 0.25, "replace", (37_425, 12_475)),
        ((49_900, 60_000), 0.5, "replace", (24_950, 24_950)),
        ((49_900, 60_000), 0.75, "replace", (12_475, 37_425)),
        ((49_900, 60_000), 1, "replace", (0, 49_900)),
        ((49_900, None), 0, "add", (12_475, 0)),
        ((49_900, None), 0.5, "add", (12_475, 12_475)),
        ((49_900, None), 0.75, "add", (12_475, 37_425)),
        ((49_900, None), 0.9, "add", (12_475, 112_275)),
        ((24_600, 18_000), 0.5, "replace", (9_000, 9_000)),  # M0 = what is there of both
        ((24_600, 18_000), 0.5, "add", (4_500, 4_500)),
        ((1_097, None), 0.75, "replace", (274, 823)),
        ((1_097, None), 0.75, "add", (274, 822)),
    ],
)
def test_counts(available, ratio, mode, wanted):
    assert counts(*available, ratio, mode) == wanted


def test_errors():
    for ratio in (-0.1, 1.1, float("nan"), "0.5", True):
        with pytest.raises(OptionError, match="from 0 to 1"):
            counts(10, None, ratio, "replace")
    with pytest.raises(OptionError, match="mode must be"):
        counts(10, None, 0.5, "swap")
    with pytest.raises(OptionError, match='mode "add" keeps them'):
        counts(10, None, 1, "add")
    with pytest.raises(
        DataError, match=r"needs 237025 foreign rows and there are 60000; use a ratio of at most 0\.8278"
    ):
        counts(49_900, 60_000, 0.95, "add")
    assert counts(49_900, 60_000, np.float32(0.8278), "add")[1] <= 60_000
    with pytest.raises(OptionError, match="clean pool at ratio 1"):
        mix(parts(), 1, "replace", 0, clean=True)


def test_id_rows_are_nested_and_both_modes_meet():
    def id_rows(ratio, mode="replace", **kw):
        rows, is_ood = mix(parts(), ratio, mode, 3, **kw)
        assert np.array_equal(is_ood, rows[:, 0] >= 1000)
        return set(rows[~is_ood, 0].tolist())

    held = [id_rows(ratio) for ratio in (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1)]
    assert [len(rows) for rows in held] == [100, 90, 75, 50, 25, 10, 0]
    assert all(high < low for low, high in pairwise(held))
    assert id_rows(0.75) == id_rows(0.75, "add") == id_rows(0.3, "add") == id_rows(0, "add")


@pytest.mark.parametrize("mode", ["replace", "add"])
def test_clean_is_the_same_id_rows_in_the_same_order(mode):
    rows, is_ood = mix(parts(), 0.5, mode, 3)
    cleaned, truth = mix(parts(), 0.5, mode, 3, clean=True)
    assert np.array_equal(cleaned, rows[~is_ood])
    assert not truth.any()
    assert len(truth) == len(cleaned)


def test_position_says_nothing_and_the_seed_decides():
    _, is_ood = mix(parts(2000, ood(5000)), 0.5, "replace", 0)
    ranks = np.flatnonzero(is_ood)
    assert abs(ranks.mean() - 999.5) < 4 * 2000 / np.sqrt(12 * 1000)
    assert np.array_equal(is_ood, mix(parts(2000, ood(5000)), 0.5, "replace", 0)[1])
    assert not np.array_equal(is_ood, mix(parts(2000, ood(5000)), 0.5, "replace", 1)[1])


def test_mixed_kinds_have_equal_shares():
    both = (ood(60, 1000), ood(40, 2000))
    assert capacity(both) == 80
    assert shares(7, 2) == [4, 3]
    rows, _ = mix(parts(100, *both), 0.5, "replace", 0)
    assert len(rows) == 80
    assert ((rows >= 1000) & (rows < 2000)).sum() == (rows >= 2000).sum() == 20
    assert capacity((Foreign("any", None, lambda n, t, y: t), ood(5))) == 10
    assert capacity((Foreign("any", None, lambda n, t, y: t),)) is None


def test_taken_rows_are_exactly_those_not_in_the_pool():
    seen = {}

    def draw(number, taken, labels):
        seen["taken"] = set(taken[:, 0].tolist())
        return np.full((number, 1), 1000, dtype=np.float32)

    rows, is_ood = mix(parts(100, Foreign("made", None, draw)), 0.3, "replace", 0)
    assert seen["taken"] == set(range(100)) - set(rows[~is_ood, 0].tolist())
    assert len(seen["taken"]) == 30


def test_mixing_leaves_the_global_generator_alone(global_rng_untouched):
    mix(parts(), 0.5, "replace", 0)


@pytest.mark.parametrize("made", [np.zeros((29, 1), np.float32), np.zeros((30, 2), np.float32), np.zeros((30, 1))])
def test_foreign_rows_that_do_not_fit_the_pool(made):
    with pytest.raises(DataError, match=r"The foreign rows 'odd' have shape .*; the pool needs \(30, 1\) and float32"):
        mix(parts(100, Foreign("odd", None, lambda n, t, y: made)), 0.3, "replace", 0)


def test_a_source_without_foreign_rows_has_a_pool_of_its_own_rows_only():
    alone = replace(parts(), foreign=())
    rows, is_ood = mix(alone, 0, "replace", 0)
    assert (sorted(rows[:, 0].tolist()), is_ood.any()) == (list(range(100)), False)
    with pytest.raises(OptionError, match="no foreign rows; use ratio=0"):
        mix(alone, 0.5, "replace", 0)
    with pytest.raises(OptionError, match="these foreign rows have none"):
        mix(alone, 0.5, "oliver", 0)
