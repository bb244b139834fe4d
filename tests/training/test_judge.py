"""Judging in parts gives what judging at once gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import wrssl
from wrssl.training.judge import final_weights
from wrssl.weighting import WEIGHTINGS


@pytest.mark.parametrize("chunk", [1, 7, 30, 10_000])
def test_final_weights_in_parts(chunk, monkeypatch):
    monkeypatch.setattr("wrssl.training.judge.CHUNK", chunk)
    weighting = WEIGHTINGS.create("wr-instance")
    weighting.table = torch.rand(30, generator=torch.Generator().manual_seed(0))
    weights = final_weights(weighting, 30)
    assert weights.dtype == np.float64
    assert np.array_equal(weights, weighting.table.double().numpy())


@pytest.mark.parametrize("weights", ["wr-cluster", "none"])
def test_the_verdicts_do_not_depend_on_the_size_of_the_parts(weights, moons, monkeypatch):
    whole = wrssl.fit(moons, weights=weights, steps=7)
    for chunk in (64, 500):
        monkeypatch.setattr("wrssl.training.judge.CHUNK", chunk)
        parts = wrssl.fit(moons, weights=weights, steps=7)
        assert np.array_equal(parts.weights, whole.weights)
        for name, column in whole.verdicts.items():
            if column.dtype.kind == "f":  # the last bit of a logit may depend on the rows beside it
                np.testing.assert_allclose(parts.verdicts[name], column, rtol=1e-6, atol=1e-3 * (name == "ood_score"))
            else:
                assert parts.verdicts[name].equals(column), name
        assert parts.metrics["test_accuracy"] == whole.metrics["test_accuracy"]
