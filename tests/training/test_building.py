"""What all models of one fit share, and what their weightings may know about the pool."""

from __future__ import annotations

import pytest
import torch

import wrssl
from wrssl.api import OptionError
from wrssl.config import FitConfig
from wrssl.registry import METHODS, WEIGHTINGS
from wrssl.training import BuildContext, TrainingData

CPU = torch.device("cpu")


def context(scenario, **options):
    config = FitConfig(**options)
    return BuildContext(scenario, TrainingData.of(scenario, config.seed, config.budget), config, CPU)


def pool_for(scenario, weights="wr", **options):
    """The context, and the pool that a weighting of this kind is shown."""
    shown = []

    class Shown(WEIGHTINGS.get(weights)):
        def setup(self, pool):
            shown.append(pool)

    made = context(scenario, method="entmin", weights="shown", **options)
    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("shown")(Shown)
        made.build().prepare_weighting()
    (pool,) = shown
    return made, pool


@pytest.mark.parametrize("budget", ["halves", "paper"])
def test_the_reference_is_labels_and_validation_examples_that_drive_the_weights(budget, moons):
    """Never those that choose the checkpoint, unless the budget makes no difference."""
    made, pool = pool_for(moons, budget=budget)
    (x, y), (x_m, y_m) = moons.labeled, made.data.roles.meta
    assert torch.equal(pool.embed_known("raw")[:], torch.cat([x, x_m]))
    assert torch.equal(pool.known_labels, torch.cat([y, y_m]))
    assert torch.equal(pool.embed("raw")[:], moons.unlabeled)
    assert (pool.size, pool.num_classes, pool.reference) == (1000, 2, len(y_m))
    assert len(y_m) == {"halves": 200, "paper": 400}[budget]
    if budget == "halves":
        known, select = {tuple(row) for row in pool.embed_known("raw")[:].tolist()}, made.data.roles.select[0]
        assert not known & {tuple(row) for row in select.tolist()}


def test_without_validation_the_reference_is_the_labels(moons):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled)
    _, pool = pool_for(own)
    assert torch.equal(pool.embed_known("raw")[:], moons.labeled[0])
    assert torch.equal(pool.known_labels, moons.labeled[1])
    assert pool.reference == 20


@pytest.mark.parametrize("kind", ["raw", "pca"])
def test_a_transform_gives_new_examples_the_rows_of_the_pool(kind, moons):
    _, pool = pool_for(moons)
    torch.testing.assert_close(pool.transform(kind)(moons.unlabeled[:50]), pool.embed(kind)[:50])
    assert pool.transform("features") is None, "they change in training"


@pytest.mark.parametrize("weights", wrssl.list_weightings())
def test_the_truth_is_for_the_oracle_alone(weights, moons):
    _, pool = pool_for(moons, weights)
    assert (pool.truth is not None) == (weights == "oracle")


def test_candidates_begin_alike_and_train_on_their_own(moons):
    """The same initialization, the same plan, no shared parameter."""
    made = context(moons, seed=5)
    one, other = made.build(), made.build(method="supervised", weights="none", bn="batch")
    for p, q in zip(one.net.module.parameters(), other.net.module.parameters(), strict=True):
        assert torch.equal(p, q)
        assert p.data_ptr() != q.data_ptr()
    assert one.trainer(40).plan == other.trainer(40).plan
    assert one.title == "vat · wr · weighted"
    assert other.title == "supervised · none · batch"


@pytest.mark.parametrize(("given", "pl", "supervised"), [(None, 3e-4, 3e-3), (0.01, 0.01, 0.01)])
def test_each_method_has_its_own_learning_rate_unless_one_is_given(given, pl, supervised, moons):
    made = context(moons, method="pl", lr=given)
    assert made.build().lr == pl
    assert made.build(method="supervised", weights="none", bn="batch").trainer(4).plan.lr == supervised


def test_a_learning_rate_that_is_not_above_zero_is_refused(moons):
    with pytest.raises(OptionError, match=r"lr must be a number above 0, not -1\.0"):
        FitConfig(lr=-1.0)

    class Still(METHODS.get("pl")):
        def __init__(self):
            super().__init__()
            self.lr = 0.0

    with METHODS.isolated():
        METHODS.register("still")(Still)
        assert context(moons, method="still", lr=0.1).build().lr == 0.1
        with pytest.raises(OptionError, match=r"lr must be above 0, but it is 0\.0"):
            context(moons, method="still").build()


@pytest.mark.parametrize(("steps", "every"), [(1, 1), (19, 1), (40, 2), (2000, 100), (10_000, 100)])
def test_twenty_evaluations_or_one_every_hundred_steps(steps, every, moons):
    made = context(moons, method="supervised", weights="none", bn="batch")
    assert made.build().trainer(steps).plan.eval_every == every


def test_a_method_without_a_pool_shows_its_weighting_none(moons):
    candidate = context(moons, method="supervised").build()
    candidate.prepare_weighting()
    assert candidate.weighting.prior is None
    with_pool = context(moons).build()
    with_pool.prepare_weighting()
    assert with_pool.weighting.prior is not None
