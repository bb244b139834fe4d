"""A weighting may say how often members are visited: batches follow it, and nothing else does."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch

import wrssl
from wrssl.api import BatchWeights, VisitRates, Weighting
from wrssl.data import stream_seed
from wrssl.registry import WEIGHTINGS
from wrssl.training import Batches, Callback, TrainingData, resume_run
from wrssl.training.order import ThinnedOrder

BATCH, SEED, POOL = 50, 4, 1000


@pytest.fixture
def batches(moons):
    return Batches(TrainingData.of(moons, SEED, "halves"), BATCH, SEED, torch.device("cpu"))


def visited(batches, steps):
    return torch.cat([batches(step, False).index for step in steps])


def some_rates(seed=0, version=0):
    """A quarter of the pool is never visited, a quarter always, the rest somewhat."""
    rate = torch.rand(POOL, generator=torch.Generator().manual_seed(seed))
    rate[::4], rate[1::4] = 0, 1
    return VisitRates(rate, version)


def test_without_rates_all_members_are_visited_equally_often(batches):
    assert visited(batches, range(POOL // BATCH)).sort().values.tolist() == list(range(POOL))


def test_visits_follow_the_rates(batches, moons):
    """The sequence is that of a thinned order with the key of the pool's own order; inputs go with their numbers."""
    rates = some_rates()
    batches.visit(rates)
    order = ThinnedOrder(rates.rate, BATCH, stream_seed(SEED, "unlabelled order"))
    for step in (0, 7, 300):
        batch = batches(step, False)
        assert torch.equal(batch.index, order(step))
        assert torch.equal(batch.x_u, moons.unlabeled[batch.index])
    counts = torch.bincount(visited(batches, range(200)), minlength=POOL)
    assert counts[::4].sum() == 0
    assert counts[1::4].float().mean() == pytest.approx(200 * BATCH / float(rates.rate.sum()), rel=0.05)


def test_labels_and_validation_are_visited_as_before(batches):
    before = [batches(step, True, True) for step in range(5)]
    batches.visit(some_rates())
    for step, batch in enumerate(before):
        after = batches(step, True, True)
        assert torch.equal(after.x_l, batch.x_l)
        assert torch.equal(after.y_l, batch.y_l)
        assert torch.equal(after.validation[0], batch.validation[0])
        assert not torch.equal(after.index, batch.index)


def test_none_brings_the_plain_order_back(batches):
    plain = visited(batches, range(10))
    batches.visit(some_rates())
    assert not torch.equal(visited(batches, range(10)), plain)
    batches.visit(None)
    assert torch.equal(visited(batches, range(10)), plain)


def test_a_new_version_changes_the_order_from_the_next_step_on(batches):
    one, other = some_rates(1, version=0), some_rates(2, version=1)
    batches.visit(one)
    first = visited(batches, range(5))
    batches.visit(other)
    assert torch.equal(visited(batches, range(5)), visited(fresh(batches, other), range(5)))
    assert not torch.equal(visited(batches, range(5)), first)
    batches.visit(one._replace(version=2))
    assert torch.equal(visited(batches, range(5)), first), "and nothing is left of the other one"


def fresh(batches, rates):
    """As if these rates had held from the beginning, as in a run that is resumed."""
    new = Batches(batches.data, BATCH, SEED, torch.device("cpu"))
    new.visit(rates)
    return new


def test_the_same_version_again_costs_nothing(batches):
    """The running sums of ten million numbers, in every step, would cost more than the step."""
    one, other = some_rates(1, version=0), some_rates(2, version=1)
    before = None
    for rates in (one, one, some_rates(1, version=0), other, other, None, None, one):
        order = batches.unlabeled
        version = None if rates is None else rates.version
        batches.visit(rates)
        assert (batches.unlabeled is order) == (version == before)
        assert torch.equal(batches.unlabeled(3), fresh(batches, rates).unlabeled(3))
        before = version


@pytest.fixture
def scripted():
    """Registers a weighting "scripted": all weights are 1, and the visit rates of each step are looked up.

    Returns the weightings of this kind that a fit has made, newest last; ``seen`` lists their batches by step.
    """

    def register(script):
        made = []

        @WEIGHTINGS.register("scripted")
        class Scripted(Weighting):
            summary: ClassVar[str] = "for this file"

            def __init__(self):
                self.step, self.seen = 0, []
                made.append(self)

            def begin(self, step):
                self.step = step

            @property
            def visits(self):
                return next(rates for first, rates in sorted(script.items(), reverse=True) if first <= self.step)

            def batch(self, index):
                return BatchWeights(torch.ones(len(index)))

            def update(self, index, signal):
                self.seen.append(index.clone())

        return made

    with WEIGHTINGS.isolated():
        yield register


def test_the_loop_asks_in_every_step(moons, scripted):
    """Plain, thinned, thinned otherwise, plain again."""
    low, high = torch.zeros(POOL), torch.zeros(POOL)
    low[:300], high[700:] = 1.0, 1.0
    made = scripted({0: None, 3: VisitRates(low, 0), 6: VisitRates(high, 1), 9: None})
    wrssl.fit(moons, method="entmin", weights="scripted", steps=12, batch_size=BATCH, seed=SEED)
    seen = made[-1].seen
    assert len(seen) == 12
    plain = Batches(TrainingData.of(moons, SEED, "halves"), BATCH, SEED, torch.device("cpu"))
    for step, index in enumerate(seen):
        if 3 <= step < 6:
            assert index.max() < 300
        elif 6 <= step < 9:
            assert index.min() >= 700
        else:
            assert torch.equal(index, plain(step, False).index)


def test_the_number_of_images_follows_the_number_of_visits(moons, scripted):
    """Ten visits an epoch are batches of ten."""
    few = torch.zeros(POOL)
    few[:10] = 1.0
    scripted({0: VisitRates(few, 0)})
    result = wrssl.fit(moons, method="entmin", weights="scripted", steps=3, batch_size=BATCH, seed=SEED)
    assert result.metrics["images_forwarded"] == 3 * (20 + 10)


def test_a_method_without_a_pool_does_not_ask(moons):
    class Mute(Callback):
        def on_step(self, trainer, outcome):
            assert outcome.unlabeled == 0

    class Never(Weighting):
        summary = "for this file"
        uniform = True

        @property
        def visits(self):
            raise AssertionError("there is no pool to visit")

        def batch(self, index):
            raise AssertionError("there is no pool to weigh")

    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("never")(Never)
        result = wrssl.fit(moons, method="supervised", weights="never", steps=2, callbacks=[Mute()])
    assert result.metrics["optimizer_steps"] == 2


@pytest.mark.parametrize("name", wrssl.list_weightings())
def test_only_the_default_weighting_chooses_visits(name, moons):
    class Look(Callback):
        def on_step(self, trainer, outcome):
            found.append(trainer.weighting.visits)

    found = []
    assert WEIGHTINGS.create(name).visits is None
    wrssl.fit(moons, method="entmin", weights=name, steps=2, fallback=False, callbacks=[Look()])
    assert [rates is not None for rates in found] == [name == "wr"] * 2


def test_a_run_with_visit_rates_resumes_exactly(moons, scripted, monkeypatch, tmp_path):
    """Stopped after the rates have changed; the order is a function of rates and step."""
    monkeypatch.setenv("WRSSL_SAVE_EVERY", "0")
    made = scripted({0: None, 5: some_rates(1, version=0), 20: some_rates(2, version=1)})
    options = {"method": "entmin", "weights": "scripted", "steps": 30, "seed": SEED, "batch_size": BATCH}
    whole = wrssl.fit(moons, **options)
    expected = made[-1].seen

    class Stop(Callback):
        def on_step(self, trainer, outcome):
            if trainer.done == 18:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wrssl.fit(moons, **options, out=tmp_path / "run", callbacks=[Stop()])
    resumed = resume_run(tmp_path / "run")
    later = made[-1].seen
    assert 0 < len(later) < 30
    for index, want in zip(later, expected[-len(later) :], strict=True):
        assert torch.equal(index, want)
    for p, q in zip(whole.model.state_dict().values(), resumed.model.state_dict().values(), strict=True):
        assert torch.equal(p, q)
    assert np.array_equal(whole.verdicts["confidence"], resumed.verdicts["confidence"])
