"""What all models of one fit share, and what their weightings may know about the pool."""

from __future__ import annotations

import pytest
import torch
from wrssl.training.candidate import Workshop, pool_of
from wrssl.training.data import TrainingData

import wrssl
from wrssl.api import OptionError
from wrssl.weighting import WEIGHTINGS

CPU = torch.device("cpu")


def workshop(scenario, seed=0, budget="halves", lr=None):
    return Workshop(scenario, TrainingData.of(scenario, seed, budget), "auto", None, seed, 100, lr, CPU, True)


def pool_for(scenario, weights="wr", **options):
    shop = workshop(scenario, **options)
    candidate = shop.build("entmin", None, weights, None, "weighted")
    return shop, pool_of(scenario, shop.data, candidate.weighting, candidate.net, CPU, shop.seed)


@pytest.mark.parametrize("budget", ["halves", "paper"])
def test_the_reference_is_labels_and_validation_examples_that_drive_the_weights(budget, moons):
    """Never those that choose the checkpoint, unless the budget makes no difference."""
    shop, pool = pool_for(moons, budget=budget)
    (x, y), (x_m, y_m) = moons.labeled, shop.data.roles.meta
    assert torch.equal(pool.embed_known("raw")[:], torch.cat([x, x_m]))
    assert torch.equal(pool.known_labels, torch.cat([y, y_m]))
    assert torch.equal(pool.embed("raw")[:], moons.unlabeled)
    assert (pool.size, pool.num_classes, pool.reference) == (1000, 2, len(y_m))
    assert len(y_m) == {"halves": 200, "paper": 400}[budget]
    if budget == "halves":
        known, select = {tuple(row) for row in pool.embed_known("raw")[:].tolist()}, shop.data.roles.select[0]
        assert not known & {tuple(row) for row in select.tolist()}


def test_without_validation_the_reference_is_the_labels(moons):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled)
    _, pool = pool_for(own)
    assert torch.equal(pool.embed_known("raw")[:], moons.labeled[0])
    assert torch.equal(pool.known_labels, moons.labeled[1])
    assert pool.reference == 20


@pytest.mark.parametrize("weights", WEIGHTINGS.names())
def test_the_truth_is_for_the_oracle_alone(weights, moons):
    _, pool = pool_for(moons, weights)
    assert (pool.truth is not None) == (weights == "oracle")


def test_candidates_begin_alike_and_train_on_their_own(moons):
    """The same initialisation, the same plan, no shared parameter."""
    shop = workshop(moons, seed=5)
    one, other = shop.build("vat", None, "wr", None, "weighted"), shop.build("supervised", None, "none", None, "batch")
    for p, q in zip(one.net.module.parameters(), other.net.module.parameters(), strict=True):
        assert torch.equal(p, q)
        assert p.data_ptr() != q.data_ptr()
    assert one.trainer(40).plan == other.trainer(40).plan
    assert one.title == "vat · wr · weighted"


@pytest.mark.parametrize(("given", "pl", "supervised"), [(None, 3e-4, 3e-3), (0.01, 0.01, 0.01)])
def test_each_method_has_its_own_learning_rate_unless_one_is_given(given, pl, supervised, moons):
    shop = workshop(moons, lr=given)
    assert shop.build("pl", None, "wr", None, "weighted").lr == pl
    assert shop.build("supervised", None, "none", None, "batch").trainer(4).plan.lr == supervised
    with pytest.raises(OptionError, match="lr must be above 0"):
        workshop(moons, lr=-1.0).build("pl", None, "wr", None, "weighted")


@pytest.mark.parametrize(("steps", "every"), [(1, 1), (19, 1), (40, 2), (2000, 100), (10_000, 100)])
def test_twenty_evaluations_or_one_every_hundred_steps(steps, every, moons):
    assert workshop(moons).build("supervised", None, "none", None, "batch").trainer(steps).plan.eval_every == every


def test_a_method_without_a_pool_has_nothing_to_look_at(moons):
    candidate = workshop(moons).build("supervised", None, "wr", None, "weighted")
    candidate.look_at_the_pool()
    assert candidate.weighting.prior is None
