"""The counts of a pool do not depend on the parts in which it is read."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.evaluate.report import pool
from wrssl.evaluate.report.pool import MOST, choose_shown, order_by_weight
from wrssl.evaluate.verdicts import VERDICTS


@pytest.fixture
def table():
    import pandas as pd

    random, n = np.random.default_rng(4), 500
    weight = random.integers(0, 21, n) / 20
    return pd.DataFrame(
        {
            "weight": weight,
            "ood_score": random.random(n),
            "is_ood": random.integers(0, 2, n),
            "verdict": pd.Categorical.from_codes(random.integers(0, 3, n), categories=VERDICTS),
        }
    )


@pytest.mark.parametrize("chunk", [1, 7, 499, 500, 501])
def test_counts_in_parts_are_those_of_the_whole(table, chunk, monkeypatch):
    monkeypatch.setattr(pool, "CHUNK", chunk)
    found = pool.summarize(table)
    weight, verdict = table["weight"].to_numpy(), np.array(table["verdict"].tolist())
    for word, counts in found["histogram"].items():
        edges = np.minimum(np.floor(weight[verdict == word] * 20 + 1e-5), 19)
        assert counts == [int((edges == k).sum()) for k in range(20)]
        assert found["verdicts"][word] == int((verdict == word).sum())
    assert found["kept_at"] == [int((weight >= k / 100).sum()) for k in range(101)]


def test_words_read_from_a_file_count_as_categories_do(table):
    assert pool.summarize(table.assign(verdict=table["verdict"].astype(object))) == pool.summarize(table)


def test_equals_are_ordered_by_their_place():
    weight, score = np.array([0.5, 0.2, 0.5, 0.2, 0.5, 0.2]), np.array([0.1, 0.7, 0.9, 0.7, 0.1, 0.8])
    assert order_by_weight(weight, score).tolist() == [5, 1, 3, 2, 0, 4]


def test_members_that_stand_for_a_cluster_are_among_those_shown():
    order = np.random.default_rng(5).permutation(5 * MOST)
    wanted = [order[[777, 1234]], order[[4000]]]
    shown = choose_shown(order, wanted).members
    assert len(shown) == MOST
    assert set(np.concatenate(wanted).tolist()) <= set(shown.tolist())
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    assert (np.diff(place[shown]) > 0).all(), "in the order of the pool"
