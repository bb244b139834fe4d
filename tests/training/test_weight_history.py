"""Weights over time: right counts, little cost, and no trace in the training."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import wrssl
from wrssl.api import BatchWeights, Weighting
from wrssl.config import FitConfig
from wrssl.training.assembly import assemble
from wrssl.training.callbacks import WeightHistory

WEIGHTINGS = ["wr", "prior", "wr-instance", "wr-cluster", "l2rw", "mwn", "ds3l", "uasd", "none", "oracle"]
BINS = WeightHistory.BINS


class Table(Weighting):
    """Weights from a table."""

    summary = "for tests"

    def __init__(self, values):
        self.values, self.asked = torch.as_tensor(values), []

    def batch(self, index):
        self.asked.append(index)
        return BatchWeights(self.values[index])


def trainer_of(weighting, done=0, rows=()):
    """What a watcher reads of a trainer."""
    pool = SimpleNamespace(unlabeled=weighting.values)
    return SimpleNamespace(weighting=weighting, data=pool, done=done, weight_rows=list(rows))


def steps_of(trainer):
    return [row["step"] for row in trainer.weight_rows]


def test_bins_hold_their_lower_end_and_the_last_one_both():
    trainer = trainer_of(Table([0.0, 0.05, 0.0499, 0.95, 1.0, 0.5]))
    WeightHistory().on_start(trainer)
    (row,) = trainer.weight_rows
    expected = [0] * BINS
    expected[0], expected[1], expected[10], expected[19] = 2, 1, 1, 2
    assert row["counts"] == expected
    assert row["step"] == 0
    assert row["members"] == 6
    assert row["mean"] == pytest.approx(np.mean([0.0, 0.05, 0.0499, 0.95, 1.0, 0.5]))


def test_there_is_a_row_per_evaluation():
    trainer = trainer_of(Table(torch.rand(50, generator=torch.Generator().manual_seed(0))))
    watch = WeightHistory()
    watch.on_start(trainer)
    for step in (10, 20):
        watch.on_evaluate(trainer, {"step": step})
    assert steps_of(trainer) == [0, 10, 20]
    assert all(sum(row["counts"]) == 50 for row in trainer.weight_rows)


def test_an_evaluation_before_the_first_step_adds_no_second_row():
    trainer = trainer_of(Table(torch.zeros(5)))
    watch = WeightHistory()
    watch.on_start(trainer)
    watch.on_evaluate(trainer, {"step": 0})
    assert steps_of(trainer) == [0]


def test_a_resumed_run_goes_on_with_its_rows():
    trainer = trainer_of(Table(torch.zeros(5)), 10, [{"step": step} for step in (0, 10, 20)])
    watch = WeightHistory()
    watch.on_start(trainer)  # what was seen after the state was stored is seen again
    assert steps_of(trainer) == [0, 10]
    watch.on_evaluate(trainer, {"step": 20})
    assert steps_of(trainer) == [0, 10, 20]


def test_a_run_that_goes_on_does_not_invent_its_beginning():
    trainer = trainer_of(Table(torch.zeros(5)), done=10)
    WeightHistory().on_start(trainer)
    assert trainer.weight_rows == []


def test_of_a_large_pool_an_even_part_is_looked_at():
    class Sparse(WeightHistory):
        MEMBERS, CHUNK = 100, 30

    table = Table(torch.arange(1000) / 1000)
    trainer = trainer_of(table)
    Sparse().on_start(trainer)
    assert torch.cat(table.asked).tolist() == list(range(0, 1000, 10))
    assert trainer.weight_rows[0]["counts"] == [5] * BINS
    assert max(map(len, table.asked)) == 30


def trained(scenario, weights, watched):
    options = {"kinds": "linear"} if weights in ("wr", "prior") else {}  # one kind of prior: quicker
    method = "vat" if weights != "uasd" else "pl"
    config = FitConfig("mlp", method, weights, weight_options=options, batch_size=50, fallback=False)
    main = assemble(scenario, config).main
    main.prepare_weighting()
    trainer, watch = main.trainer(1000), WeightHistory()
    for step in range(12):
        trainer.step(step)
        if watched and step % 2 == 0:
            watch.on_evaluate(trainer, {"step": step + 1})
    members = torch.arange(len(scenario.unlabeled))
    return trainer.net.module.state_dict(), trainer.weighting.batch(members).weight, trainer.weight_rows


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
