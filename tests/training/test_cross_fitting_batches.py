"""Without validation labels a fold of the labeled batch judges the rest of it: both parts have rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import wrssl
from wrssl.training import Batches, TrainingData
from wrssl.training.batches import fold_of

SEED = 3


def data(labels, validation=None):
    own = np.random.default_rng(0)
    x, y = own.normal(size=(labels, 3)).astype(np.float32), np.arange(labels) % 3
    return wrssl.Scenario((x, y), own.normal(size=(40, 3)).astype(np.float32), validation)


@pytest.mark.parametrize(("labels", "batch_size"), [(9, 2), (9, 3), (30, 2), (30, 8), (3, 2)])
def test_some_rows_are_held_out_and_some_are_not(labels, batch_size):
    scenario = data(labels)
    batches = Batches(TrainingData.of(scenario, SEED, "halves"), batch_size, SEED, torch.device("cpu"))
    folds, alone = fold_of(scenario.labeled[1], SEED), 0
    for step in range(60):
        held_out = batches(step, True).held_out
        assert 0 < held_out.sum() < len(held_out), step
        of_rows = folds[batches.labeled(step)]
        if len(of_rows.unique()) == 1:
            alone += 1
        else:  # a whole fold, and nothing else
            (fold,) = of_rows[held_out].unique().tolist()
            assert torch.equal(held_out, of_rows == fold)
    assert alone > 0 or (labels, batch_size) != (9, 2)


@pytest.mark.parametrize("weights", ["l2rw", "mwn", "wr-instance"])
def test_one_validation_example_and_batches_of_two(weights):
    """A batch whose two rows were of one fold had nothing left to learn from, and a loss that was no number."""
    own = np.random.default_rng(1)
    scenario = data(9, (own.normal(size=(1, 3)).astype(np.float32), np.array([0])))
    result = wrssl.fit(
        scenario, "mlp", "entmin", weights, steps=30, batch_size=2, seed=0, fallback=False, progress=False
    )
    assert result.metrics["skipped_steps"] == 0
    assert result.history["loss"].notna().all()
