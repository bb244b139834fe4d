"""A callback that calls ``trainer.stop()`` ends the run and keeps its result."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import wrssl
from wrssl.config import FitConfig
from wrssl.training import BuildContext, Callback, TrainingData, resume_run

STEPS, AT = 40, 13  # evaluated every two steps, so that this step would have no evaluation


class StopAt(Callback):
    """Stops after a step, and keeps what it saw: the steps, the parameters at the end, whether the end was called."""

    def __init__(self, step, hook="on_step"):
        self.step, self.hook, self.done, self.ends = step, hook, [], 0

    def _stop(self, trainer, hook):
        if hook == self.hook and trainer.done >= self.step:
            trainer.stop()

    def on_start(self, trainer):
        self._stop(trainer, "on_start")

    def on_step(self, trainer, outcome):
        self.done.append(trainer.done)
        self._stop(trainer, "on_step")

    def on_evaluate(self, trainer, row):
        self._stop(trainer, "on_evaluate")

    def on_end(self, trainer):
        self.ends += 1
        self.trainer, self.last = trainer, copy.deepcopy(trainer.net.module.state_dict())


def same_state(one, other):
    assert list(one) == list(other)
    return all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize("weights", ["wr", "wr-cluster", "none"])
def test_it_is_the_beginning_of_the_whole_run(weights, moons):
    """Same steps, schedule and history up to there; one evaluation more, of the last step."""
    options = {"method": "entmin", "weights": weights, "steps": STEPS, "seed": 0, "fallback": False}
    stop, watch = StopAt(AT), StopAt(10**9)
    whole = wrssl.fit(moons, **options, callbacks=[watch])
    result = wrssl.fit(moons, **options, callbacks=[stop])
    assert stop.done == list(range(1, AT + 1))
    assert (stop.ends, stop.trainer.stopped, watch.trainer.stopped) == (1, True, False)
    assert result.metrics["optimizer_steps"] == AT
    assert whole.metrics["optimizer_steps"] == STEPS
    assert result.config["steps"] == STEPS
    columns = ["step", "lr", "labeled", "val_accuracy", "val_loss"]
    assert result.history["step"].tolist() == [*range(2, AT, 2), AT]
    assert result.history[columns].iloc[:-1].equals(whole.history[columns].iloc[: AT // 2])
    assert result.history["val_accuracy"].notna().all()
    again = StopAt(AT, "on_evaluate")
    later = wrssl.fit(moons, **options, callbacks=[again])
    assert later.history["step"].tolist() == list(range(2, AT + 2, 2)), "it stops at the next evaluation, once"
    assert later.history[columns].equals(whole.history[columns].iloc[: AT // 2 + 1])


def test_the_result_is_that_of_the_steps_that_were_taken(moons):
    """The best checkpoint so far, the weights as they are, and verdicts on the whole pool."""
    stop = StopAt(AT)
    result = wrssl.fit(moons, method="entmin", weights="wr-instance", steps=STEPS, seed=0, callbacks=[stop])
    best = min((row for _, row in result.history.iterrows()), key=lambda row: (-row["val_accuracy"], row["val_loss"]))
    assert result.metrics["best_step"] == best["step"] <= AT
    assert result.metrics["val_accuracy"] == best["val_accuracy"]
    assert same_state(result.model.state_dict(), stop.trainer.best.state)
    table = stop.trainer.weighting.batch(torch.arange(1000)).weight.double().numpy()
    assert np.array_equal(result.weights, table)
    assert np.ptp(result.weights) > 0
    assert np.array_equal(result.verdicts["weight"].to_numpy(), result.weights)
    x, y = moons.test
    assert (result.predict(x) == moons.classes[y.numpy()]).mean() == result.metrics["test_accuracy"]


def test_without_a_select_set_the_last_parameters_are_returned(moons):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled)
    stop = StopAt(AT)
    result = wrssl.fit(own, method="entmin", steps=STEPS, callbacks=[stop])
    assert result.metrics["best_step"] == AT
    assert same_state(result.model.state_dict(), stop.last)


def test_the_models_of_the_fallback_take_equally_many_steps(moons, tmp_path):
    options = {"method": "entmin", "steps": STEPS, "seed": 0}
    stop = StopAt(AT)
    result = wrssl.fit(moons, **options, callbacks=[stop], out=tmp_path / "run")
    assert stop.ends == 1, "it watches the requested model"
    assert result.metrics["optimizer_steps"] == AT
    assert result.metrics["fallback_steps"] == 2 * AT
    plain = wrssl.fit(moons, **options, weights="none", bn="batch", callbacks=[StopAt(AT)])
    candidates = result.metrics["candidates"]
    assert list(candidates) == ["weighted", "plain", "supervised"]
    for key in ("val_accuracy", "val_loss"):
        assert candidates["plain"][key] == plain.metrics[key], "with the schedule of the whole plan"
    read = wrssl.load(tmp_path / "run")
    assert read.metrics["optimizer_steps"] == AT
    assert np.array_equal(read.weights, result.weights)
    assert np.array_equal(read.predict_proba(moons.test[0]), result.predict_proba(moons.test[0]))


class BreakOff(Callback):
    """Stops at a step; the process is gone before anything else is done."""

    def on_step(self, trainer, outcome):
        if trainer.done == AT:
            trainer.stop()

    def on_end(self, trainer):
        if trainer.stopped:
            raise KeyboardInterrupt


@pytest.mark.parametrize("fallback", [True, False])
def test_a_stopped_run_that_is_broken_off_later_stays_stopped(fallback, moons, tmp_path, monkeypatch):
    """The stop is part of the stored state: a resumed run takes no further step of that model."""
    monkeypatch.setenv("WRSSL_SAVE_EVERY", "0")
    options = {"method": "entmin", "steps": STEPS, "seed": 0, "fallback": fallback}
    whole = wrssl.fit(moons, **options, callbacks=[StopAt(AT)])
    with pytest.raises(KeyboardInterrupt):
        wrssl.fit(moons, **options, callbacks=[BreakOff()], out=tmp_path / "run")
    resumed = resume_run(tmp_path / "run")
    assert resumed.metrics["optimizer_steps"] == AT
    assert resumed.metrics["fallback_steps"] == (2 * AT if fallback else 0)
    assert same_state(resumed.model.state_dict(), whole.model.state_dict())
    assert np.array_equal(resumed.weights, whole.weights)
    columns = [name for name in whole.history if name != "seconds"]
    assert resumed.history[columns].equals(whole.history[columns])


@pytest.mark.parametrize("fallback", [True, False])
def test_a_run_may_be_stopped_before_its_first_step(fallback, moons, tmp_path):
    """Its result is that of the initial network and the initial weights."""
    stop = StopAt(0, "on_start")
    out = tmp_path / "run"
    result = wrssl.fit(moons, method="entmin", steps=STEPS, fallback=fallback, callbacks=[stop], out=out)
    assert (stop.done, stop.ends) == ([], 1)
    assert result.metrics["optimizer_steps"] == 0
    assert result.metrics["best_step"] == 0
    initial = BuildContext(moons, TrainingData.of(moons, 0, "halves"), FitConfig(), torch.device("cpu")).build()
    assert same_state(result.model.state_dict(), initial.net.module.state_dict())
    (row,) = result.history.to_dict("records")
    assert (row["step"], row["val_accuracy"]) == (0, result.metrics["val_accuracy"])
    assert [counted["step"] for counted in stop.trainer.weight_rows] == [0]
    assert np.array_equal(result.weights, stop.trainer.weighting.batch(torch.arange(1000)).weight.numpy())
    assert 0 <= result.metrics["test_accuracy"] <= 1
    if fallback:  # the three are the same network, so the first is returned
        candidates = result.metrics["candidates"]
        assert candidates["plain"] == candidates["supervised"] == candidates["weighted"]
        assert (result.metrics["chosen"], result.metrics["fallback_steps"]) == ("weighted", 0)
    read = wrssl.load(out)
    assert np.array_equal(read.weights, result.weights)
    assert read.history["step"].tolist() == [0]
    assert read.metrics["seconds_per_step"] is None
