"""The two weightings that do not learn: none and oracle."""

from __future__ import annotations

import pytest
import torch

from wrssl.api import DataError
from wrssl.judging import PoolJudge
from wrssl.registry import WEIGHTINGS

INDEX = torch.tensor([4, 0, 2, 2])


def test_none_gives_every_member_one(make_pool, make_signal):
    weighting = WEIGHTINGS.create("none")
    weighting.setup(make_pool(torch.zeros(5, 2)))
    weighting.begin(0)
    weighting.update(INDEX, make_signal([1.0, 2.0, 3.0, 4.0]))
    assert weighting.batch(INDEX).weight.tolist() == [1.0, 1.0, 1.0, 1.0]
    assert weighting.uniform
    now = weighting.batch(INDEX)
    assert now.factor is now.presence is now.weight
    assert weighting.request(0) is None
    assert weighting.visits is None
    assert not isinstance(weighting, PoolJudge), "the network judges the pool"
    assert weighting.state_dict() == {}


def test_oracle_is_exactly_one_minus_is_ood(make_pool, make_signal):
    truth = torch.tensor([True, False, False, True, True])
    weighting = WEIGHTINGS.create("oracle")
    weighting.setup(make_pool(torch.zeros(5, 2), truth=truth))
    assert weighting.batch(torch.arange(5)).weight.tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]
    assert weighting.batch(INDEX).weight.tolist() == [0.0, 0.0, 1.0, 1.0]
    weighting.update(INDEX, make_signal([1.0, 2.0, 3.0, 4.0]))
    assert torch.equal(weighting.batch(torch.arange(5)).weight, 1 - truth.float())
    assert weighting.batch(INDEX).weight.dtype == torch.float32
    assert not weighting.uniform
    assert not isinstance(weighting, PoolJudge)
    assert weighting.request(0) is None


def test_oracle_without_the_truth_is_a_sentence(make_pool):
    with pytest.raises(DataError, match="needs to know the truth; give the scenario is_ood"):
        WEIGHTINGS.create("oracle").setup(make_pool(truth=None))


def test_only_the_oracle_asks_for_the_truth():
    names = ("none", "oracle", "wr-instance", "wr-cluster")
    assert [n for n in names if WEIGHTINGS.get(n).wants_truth] == ["oracle"]
    assert [n for n in names if WEIGHTINGS.get(n).uniform] == ["none"]


def test_only_the_default_is_guarded_by_a_fallback():
    built_in = {"none", "oracle", "prior", "wr-instance", "wr-cluster", "wr", "l2rw", "mwn", "ds3l", "uasd"}
    assert built_in <= set(WEIGHTINGS.names())
    assert {name for name in built_in if WEIGHTINGS.get(name).guarded} == {"wr"}
    assert all(WEIGHTINGS.get(name).revision >= 1 for name in built_in)
