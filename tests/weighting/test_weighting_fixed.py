"""The two weightings that do not learn: none and oracle."""

from __future__ import annotations

import pytest
import torch

from wrssl.api import DataError
from wrssl.weighting import WEIGHTINGS

INDEX = torch.tensor([4, 0, 2, 2])


def test_none_gives_everybody_one(make_pool, make_signal):
    weighting = WEIGHTINGS.create("none")
    weighting.setup(make_pool(torch.zeros(5, 2)))
    weighting.begin_step(0)
    weighting.update(INDEX, make_signal([1.0, 2.0, 3.0, 4.0]))
    assert weighting.weights(INDEX).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert weighting.uniform
    assert weighting.estimator(0) is None
    assert weighting.clusters() is None
    assert weighting.state_dict() == {}


def test_oracle_is_exactly_one_minus_is_ood(make_pool, make_signal):
    truth = torch.tensor([True, False, False, True, True])
    weighting = WEIGHTINGS.create("oracle")
    weighting.setup(make_pool(torch.zeros(5, 2), truth=truth))
    assert weighting.weights(torch.arange(5)).tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]
    assert weighting.weights(INDEX).tolist() == [0.0, 0.0, 1.0, 1.0]
    weighting.update(INDEX, make_signal([1.0, 2.0, 3.0, 4.0]))
    assert torch.equal(weighting.weights(torch.arange(5)), 1 - truth.float())
    assert weighting.weights(INDEX).dtype == torch.float32
    assert not weighting.uniform
    assert weighting.estimator(0) is None


def test_oracle_without_the_truth_is_a_sentence(make_pool):
    with pytest.raises(DataError, match="needs to know the truth; give the scenario is_ood"):
        WEIGHTINGS.create("oracle").setup(make_pool(truth=None))


def test_only_the_oracle_asks_for_the_truth():
    names = ("none", "oracle", "wr-instance", "wr-cluster")
    assert [n for n in names if WEIGHTINGS.get(n).wants_truth] == ["oracle"]
    assert [n for n in names if WEIGHTINGS.get(n).uniform] == ["none"]
