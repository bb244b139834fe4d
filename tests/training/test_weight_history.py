"""Weights over time: right counts, little cost, and no trace in the training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from wrssl.training.weight_history import BINS, WeightHistory

import wrssl
from wrssl.training import weight_history
from wrssl_bench.steps import make_trainer

WEIGHTINGS = ["wr", "prior", "wr-instance", "wr-cluster", "l2rw", "mwn", "ds3l", "uasd", "none", "oracle"]


class Table(wrssl.api.Weighting):
    """Weights from a table."""

    summary = "for tests"

    def __init__(self, values):
        self.values, self.asked = torch.as_tensor(values), []

    def weights(self, index):
        self.asked.append(index)
        return self.values[index]


def test_bins_hold_their_lower_end_and_the_last_one_both():
    watch = WeightHistory(Table([0.0, 0.05, 0.0499, 0.95, 1.0, 0.5]), 6)
    watch.on_start(0, 100)
    (row,) = watch.rows
    expected = [0] * BINS
    expected[0], expected[1], expected[10], expected[19] = 2, 1, 1, 2
    assert row["counts"] == expected
    assert row["step"] == 0
    assert row["members"] == 6
    assert row["mean"] == pytest.approx(np.mean([0.0, 0.05, 0.0499, 0.95, 1.0, 0.5]))


def test_a_row_per_evaluation():
    watch = WeightHistory(Table(torch.rand(50, generator=torch.Generator().manual_seed(0))), 50)
    watch.on_start(0, 100)
    for step in (10, 20):
        watch.on_evaluate({"step": step})
    assert [row["step"] for row in watch.rows] == [0, 10, 20]
    assert all(sum(row["counts"]) == 50 for row in watch.rows)


def test_a_resumed_run_goes_on_with_its_rows():
    watch = WeightHistory(Table(torch.zeros(5)), 5)
    watch.rows = [{"step": step} for step in (0, 10, 20)]
    watch.on_start(10, 100)  # what was seen after the state was stored is seen again
    assert [row["step"] for row in watch.rows] == [0, 10]
    watch.on_evaluate({"step": 20})
    assert [row["step"] for row in watch.rows] == [0, 10, 20]


def test_a_run_that_goes_on_does_not_invent_its_beginning():
    watch = WeightHistory(Table(torch.zeros(5)), 5)
    watch.on_start(10, 100)
    assert watch.rows == []


def test_of_a_large_pool_an_even_part_is_looked_at(monkeypatch):
    monkeypatch.setattr(weight_history, "MEMBERS", 100)
    monkeypatch.setattr(weight_history, "CHUNK", 30)
    table = Table(torch.arange(1000) / 1000)
    watch = WeightHistory(table, 1000)
    watch.on_start(0, 1)
    assert torch.cat(table.asked).tolist() == list(range(0, 1000, 10))
    assert watch.rows[0]["counts"] == [5] * BINS
    assert max(map(len, table.asked)) == 30


def trained(scenario, weights, watched):
    options = {"kinds": "linear"} if weights in ("wr", "prior") else {}  # one kind of prior: quicker
    trainer = make_trainer(scenario, "mlp", "vat" if weights != "uasd" else "pl", weights, batch_size=50, **options)
    watch = WeightHistory(trainer.weighting, len(scenario.unlabeled))
    for step in range(12):
        if watched and step % 2 == 0:
            watch.on_evaluate({"step": step})
        trainer.step(step)
    members = torch.arange(len(scenario.unlabeled))
    return trainer.net.module.state_dict(), trainer.weighting.weights(members), watch.rows


@pytest.fixture(scope="module")
def moons():
    return wrssl.load_scenario("moons", ood="faraway", seed=0)


@pytest.mark.parametrize("weights", WEIGHTINGS)
def test_looking_changes_nothing(moons, weights, global_rng_untouched):
    (before, table, _), (after, watched, rows) = trained(moons, weights, False), trained(moons, weights, True)
    for name, value in before.items():
        assert torch.equal(value, after[name]), name
    assert torch.equal(table, watched)
    assert len(rows) == 6
    assert all(sum(row["counts"]) == len(moons.unlabeled) for row in rows)


def test_every_weighting_was_tried():
    assert set(WEIGHTINGS) == set(wrssl.list_weightings())
