"""The dictionary: what JSON can hold, the same each time, and its numbers those of the tables."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch

import wrssl
from wrssl.evaluate import collect
from wrssl.evaluate.report import pool as pool_module
from wrssl.evaluate.report.pool import choose_shown, evenly, names_of, order_by_weight, unpacked

pytestmark = pytest.mark.usefixtures("global_rng_untouched")


def test_json_holds_it_and_gives_it_back(data):
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["metrics"]["not_a_number"] is None


def test_the_same_run_gives_the_same_dictionary(run, data):
    assert json.dumps(run.collect()) == json.dumps(data)


def test_counts_are_those_of_the_table(run, data):
    pool, table = data["pool"], run.verdicts
    assert pool["size"] == len(table)
    assert pool["verdicts"] == {word: int((table["verdict"] == word).sum()) for word in ("keep", "doubt", "drop")}
    assert pool["mean_weight"] == pytest.approx(table["weight"].mean())
    assert pool["kept_at"] == [int((table["weight"] >= k / 100).sum()) for k in range(101)]
    assert sum(map(sum, pool["histogram"].values())) == len(table)
    dropped = table[table["verdict"] == "drop"]
    assert pool["histogram"]["drop"] == np.histogram(dropped["weight"], np.arange(21) / 20)[0].tolist()
    foreign = table["is_ood"] == 1
    assert pool["truth"]["foreign"] == int(foreign.sum())
    for word in ("keep", "doubt", "drop"):
        chosen = table["verdict"] == word
        assert pool["truth"][word] == {"own": int((chosen & ~foreign).sum()), "foreign": int((chosen & foreign).sum())}


def test_members_are_those_of_the_table(run, data):
    members, table = data["members"], run.verdicts
    assert members["complete"]
    shown_as = [name.replace("\udcff", "\\udcff") for name in table["id"]]
    assert names_of(members["ids"], members["count"]) == shown_as
    words = np.array(["keep", "doubt", "drop"])[unpacked(members["verdict"])]
    assert words.tolist() == table["verdict"].tolist()
    assert np.array(run.classes)[unpacked(members["label"])].tolist() == table["pseudo_label"].tolist()
    assert (unpacked(members["cluster"]) - 1).tolist() == table["cluster"].tolist()
    assert unpacked(members["truth"]).tolist() == table["is_ood"].tolist()
    for name in ("ood_score", "confidence"):
        np.testing.assert_allclose(unpacked(members[name]) / 1e4, table[name], atol=5.1e-5)


def test_unknown_truth_and_no_clusters(make):
    found = make(truth=False, clusters=None).collect()
    assert found["pool"]["truth"] is None
    assert found["clusters"] is None
    assert set(unpacked(found["members"]["truth"])) == {2}
    assert set(unpacked(found["members"]["cluster"])) == {0}


def test_row_numbers_take_no_room(make):
    run = make(ids=list(range(150)))
    assert run.collect()["members"]["ids"] is None


def test_a_pool_that_is_too_large_is_not_listed(make, monkeypatch):
    monkeypatch.setattr(pool_module, "BUDGET", 3_000)
    run = make()
    found = run.collect()
    assert not found["members"]["complete"]
    assert found["members"]["count"] == len(found["shown"]["members"]) == 150
    assert found["pool"]["kept_at"][50] == int((run.verdicts["weight"] >= 0.5).sum())


def test_clusters_are_those_of_the_table(run, data):
    grouped = run.verdicts.groupby("cluster")["weight"]
    rows = data["clusters"]["rows"]
    assert [row["mean_weight"] for row in rows] == sorted(row["mean_weight"] for row in rows)
    for row in rows:
        part = grouped.get_group(row["cluster"])
        assert row["size"] == len(part)
        assert row["mean_weight"] == pytest.approx(part.mean())
        weights = run.verdicts["weight"][row["members"]].tolist()
        assert weights == sorted(weights)
        assert (weights[0], weights[-1]) == (part.min(), part.max())
        assert row["foreign"] == int(run.verdicts["is_ood"][part.index].sum())
        assert row["keep"] + row["doubt"] + row["drop"] == row["size"]


def test_of_many_clusters_both_ends_are_described(make):
    groups = make(clusters=60).collect()["clusters"]
    assert groups["number"] == 60
    means = [row["mean_weight"] for row in groups["rows"]]
    assert len(means) == 40
    assert means == sorted(means)


def test_the_order_is_weight_then_strangeness_then_place():
    weight, score = np.array([0.5, 0.1, 0.5, 0.5]), np.array([0.2, 0.0, 0.9, 0.2])
    assert order_by_weight(weight, score).tolist() == [1, 2, 0, 3]


def test_both_ends_the_clusters_and_even_distances_are_shown():
    order = np.random.default_rng(0).permutation(5000)
    montage = order[[2500, 2501, 2502]]
    shown = choose_shown(order, [montage])
    assert len(shown.members) == len(set(shown.members.tolist())) == 1000
    place = np.empty(5000, dtype=int)
    place[order] = np.arange(5000)
    places = place[shown.members]
    assert (np.diff(places) > 0).all()
    assert places[:200].tolist() == list(range(200))
    assert places[-200:].tolist() == list(range(4800, 5000))
    assert set(montage) <= set(shown.members.tolist())
    assert np.diff(places).max() <= 2 * 5000 / 600


def test_a_small_pool_is_shown_as_a_whole():
    shown = choose_shown(np.arange(1000), [])
    assert shown.members.tolist() == list(range(1000))
    assert (shown.lowest, shown.highest) == (1000, 0)
    assert evenly(3, 10).tolist() == [0, 1, 2]
    assert evenly(101, 3).tolist() == [0, 50, 100]


def test_long_histories_are_thinned_with_both_ends(run):
    history = pd.DataFrame({"step": range(1, 2001), "labeled": 1.0})
    snapshots = [{"step": k, "mean": 0.5, "members": 1, "counts": [1] * 20} for k in range(2001)]
    found = run.but(history=history, weight_history=snapshots).collect()
    assert len(found["history"]) == 300
    assert (found["history"][0]["step"], found["history"][-1]["step"]) == (1, 2000)
    assert len(found["weight_history"]) == 60
    assert found["weight_history"][-1]["step"] == 2000


def test_a_real_run_agrees_with_its_own_metrics():
    scenario = wrssl.load_scenario("moons", ood="faraway", seed=0)
    result = wrssl.fit(scenario, steps=20, weights="none", bn="batch", fallback=False, threads=1, progress=False)
    parts = result.model, result.verdicts, result.history, result.metrics, result.config, result.classes
    found = collect(scenario, *parts)
    assert found["judged"]["right"] / found["judged"]["rows"] == result.metrics["test_accuracy"]
    assert found["sheet"] is None
    assert found["clusters"] is None
    row = found["batch_norm"]["layers"][0]
    assert row["mean_plain"] == pytest.approx(row["mean_weighted"])  # every weight is 1


def test_scenarios_without_a_list_of_skipped_files(run):
    class Bare:
        def __getattr__(self, name):
            if name == "skipped":
                raise AttributeError(name)
            return getattr(run.scenario, name)

    assert run.but(scenario=Bare()).collect()["skipped"] == {"number": 0, "rows": []}


def test_a_huge_pool_takes_no_more_room_than_a_large_one(make):
    small = make(size=1200, ids=list(range(1200)), shape=(4,))
    size = 400_000
    rows = np.resize(np.arange(1200), size)
    verdicts = small.verdicts.iloc[rows].reset_index(drop=True).assign(id=[f"f/{k}.png" for k in range(size)])
    small.scenario.unlabeled = torch.zeros(1, 4, dtype=torch.uint8).expand(size, 4)
    html = small.but(verdicts=verdicts).render()
    assert len(html.encode()) < 500_000
    assert "400,000 members, too many for one page: 1,000 are here" in html
