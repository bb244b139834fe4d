"""A weighting may say how often members are visited: batches follow it, and nothing else does."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch
from wrssl.training.data import Batches, TrainingData
from wrssl.training.randomness import stream_seed
from wrssl.training.thinned import ThinnedOrder

import wrssl
from wrssl.api import Weighting
from wrssl.training import Callback
from wrssl.weighting import WEIGHTINGS

BATCH, SEED, POOL = 50, 4, 1000


@pytest.fixture
def batches(moons):
    return Batches(TrainingData.of(moons, SEED, "halves"), BATCH, SEED, torch.device("cpu"))


def visited(batches, steps):
    return torch.cat([batches(step, False).index for step in steps])


def some_admission(seed=0):
    """A quarter of the pool is never visited, a quarter always, the rest somewhat."""
    admission = torch.rand(POOL, generator=torch.Generator().manual_seed(seed))
    admission[::4], admission[1::4] = 0, 1
    return admission


def test_without_a_word_everybody_is_visited_alike(batches):
    assert visited(batches, range(POOL // BATCH)).sort().values.tolist() == list(range(POOL))


def test_visits_follow_the_admission(batches, moons):
    """The sequence is that of a thinned order with the key of the pool's own order; inputs go with their numbers."""
    admission = some_admission()
    batches.admit(admission)
    order = ThinnedOrder(admission, BATCH, stream_seed(SEED, "unlabelled order"))
    for step in (0, 7, 300):
        batch = batches(step, False)
        assert torch.equal(batch.index, order(step))
        assert torch.equal(batch.x_u, moons.unlabeled[batch.index])
    counts = torch.bincount(visited(batches, range(200)), minlength=POOL)
    assert counts[::4].sum() == 0
    assert counts[1::4].float().mean() == pytest.approx(200 * BATCH / float(admission.sum()), rel=0.05)


def test_labels_and_validation_are_visited_as_before(batches):
    before = [batches(step, True, True) for step in range(5)]
    batches.admit(some_admission())
    for step, batch in enumerate(before):
        after = batches(step, True, True)
        assert torch.equal(after.x_l, batch.x_l)
        assert torch.equal(after.y_l, batch.y_l)
        assert torch.equal(after.validation[0], batch.validation[0])
        assert not torch.equal(after.index, batch.index)


def test_none_brings_the_plain_order_back(batches):
    plain = visited(batches, range(10))
    batches.admit(some_admission())
    assert not torch.equal(visited(batches, range(10)), plain)
    batches.admit(None)
    assert torch.equal(visited(batches, range(10)), plain)


def test_a_new_tensor_changes_the_order_from_the_next_step_on(batches):
    one, other = some_admission(1), some_admission(2)
    batches.admit(one)
    first = visited(batches, range(5))
    batches.admit(other)
    assert torch.equal(visited(batches, range(5)), visited(fresh(batches, other), range(5)))
    assert not torch.equal(visited(batches, range(5)), first)
    batches.admit(one)
    assert torch.equal(visited(batches, range(5)), first), "and nothing is left of the other one"


def fresh(batches, admission):
    """As if this admission had held from the beginning, as in a run that is resumed."""
    new = Batches(batches.data, BATCH, SEED, torch.device("cpu"))
    new.admit(admission)
    return new


def test_the_same_tensor_again_costs_nothing(batches, monkeypatch):
    """The running sums of ten million numbers, in every step, would cost more than the step."""
    built = []

    def spy(admission, batch, key):
        built.append(admission)
        return ThinnedOrder(admission, batch, key)

    monkeypatch.setattr("wrssl.training.data.ThinnedOrder", spy)
    one, other = some_admission(1), some_admission(1)
    for admission in (one, one, one, other, other, None, None, one):
        order = batches.unlabeled
        rebuilds = admission is not batches._admission
        batches.admit(admission)
        assert (batches.unlabeled is not order) == rebuilds
    assert [admission is one for admission in built] == [True, False, True]


class Scripted(Weighting):
    """Everybody weighs 1; the admission of each step is looked up. ``seen`` lists the batches by step."""

    summary: ClassVar[str] = "for this file"
    script: ClassVar[dict[int, torch.Tensor | None]] = {}

    def __init__(self):
        self.step, self.seen = 0, []

    def begin_step(self, step):
        self.step = step

    def admission(self):
        return next(a for first, a in sorted(self.script.items(), reverse=True) if first <= self.step)

    def weights(self, index):
        return torch.ones(len(index))

    def update(self, index, signal):
        self.seen.append(index.clone())


@pytest.fixture
def scripted(monkeypatch):
    """Weightings of this kind that a fit has made, newest last."""
    made = []

    class Kept(Scripted):
        def __init__(self):
            super().__init__()
            made.append(self)

    monkeypatch.setattr(WEIGHTINGS, "_classes", {**WEIGHTINGS._classes, "scripted": Kept})
    return made


def test_the_loop_asks_in_every_step(moons, scripted, monkeypatch):
    """Plain, thinned, thinned otherwise, plain again."""
    low, high = torch.zeros(POOL), torch.zeros(POOL)
    low[:300], high[700:] = 1.0, 1.0
    monkeypatch.setattr(Scripted, "script", {0: None, 3: low, 6: high, 9: None})
    wrssl.fit(moons, method="entmin", weights="scripted", steps=12, batch_size=BATCH, seed=SEED)
    seen = scripted[-1].seen
    plain = Batches(TrainingData.of(moons, SEED, "halves"), BATCH, SEED, torch.device("cpu"))
    for step, index in enumerate(seen):
        if 3 <= step < 6:
            assert index.max() < 300
        elif 6 <= step < 9:
            assert index.min() >= 700
        else:
            assert torch.equal(index, plain(step, False).index)


def test_the_number_of_images_follows_the_number_of_visits(moons, scripted, monkeypatch):
    """Ten visits an epoch are batches of ten."""
    few = torch.zeros(POOL)
    few[:10] = 1.0
    monkeypatch.setattr(Scripted, "script", {0: few})
    result = wrssl.fit(moons, method="entmin", weights="scripted", steps=3, batch_size=BATCH, seed=SEED)
    assert result.metrics["images_forwarded"] == 3 * (20 + 10)


def test_a_method_without_a_pool_does_not_ask(moons, monkeypatch):
    class Mute(Callback):
        def on_step(self, step, outcome):
            assert outcome.unlabeled == 0

    def never(self):
        raise AssertionError("there is nobody to admit")

    monkeypatch.setattr(Weighting, "admission", never)
    result = wrssl.fit(moons, method="supervised", weights="none", steps=2, callbacks=[Mute()])
    assert result.metrics["optimizer_steps"] == 2


def test_weightings_admit_everybody_unless_they_say_otherwise(moons):
    for name in WEIGHTINGS.names():
        if name != "wr":
            assert WEIGHTINGS.create(name).admission() is None, name


def test_a_run_with_admissions_goes_on_exactly(moons, scripted, monkeypatch, tmp_path):
    """Stopped after the admission has changed; the order is a function of admission and step."""
    from wrssl.training.resume import resume_run

    from wrssl.training import state

    monkeypatch.setattr(state, "SAVE_EVERY", -1.0)
    monkeypatch.setattr(Scripted, "script", {0: None, 5: some_admission(1), 20: some_admission(2)})
    options = {"method": "entmin", "weights": "scripted", "steps": 30, "seed": SEED, "batch_size": BATCH}
    whole = wrssl.fit(moons, **options)
    expected = scripted[-1].seen

    class Stop(Callback):
        def on_step(self, step, outcome):
            if step == 17:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wrssl.fit(moons, **options, out=tmp_path / "run", callbacks=[Stop()])
    resumed = resume_run(tmp_path / "run")
    later = scripted[-1].seen
    assert 0 < len(later) < 30
    for index, want in zip(later, expected[-len(later) :], strict=True):
        assert torch.equal(index, want)
    for p, q in zip(whole.model.state_dict().values(), resumed.model.state_dict().values(), strict=True):
        assert torch.equal(p, q)
    assert np.array_equal(whole.verdicts["confidence"], resumed.verdicts["confidence"])
