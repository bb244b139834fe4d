"""A run that was stopped, in whatever way and wherever, ends with the very bytes of one that was not."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time

import numpy as np
import pandas as pd
import pytest
from torch import nn

import wrssl
from wrssl.api import DataError, OptionError
from wrssl.runs import StateWarning, StorageError
from wrssl.training.resuming import resume_run

STEPS = 6
TIMES = ("seconds_per_step",)


@pytest.fixture(autouse=True, scope="module")
def saved_after_every_step():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WRSSL_SAVE_EVERY", "0")
        yield


@pytest.fixture(scope="module")
def small():
    return wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)


def fit(data, out, **options):
    if options.get("weights") == "wr":
        options["weight_options"] = {"kinds": "linear"}  # the quickest prior
    return wrssl.fit(data, **{"weights": "wr-instance", "steps": STEPS, "progress": False, **options}, out=out)


@pytest.fixture(scope="module")
def whole(small, tmp_path_factory):
    """What an uninterrupted run leaves, by weighting."""
    found = {}

    def of(weights="wr-instance"):
        if weights not in found:
            out = tmp_path_factory.mktemp("whole") / weights
            fit(small, out, weights=weights)
            found[weights] = outcome(out)
        return found[weights]

    return of


def outcome(folder):
    """What two runs must agree on: the bytes of model and verdicts, all numbers but times."""
    metrics = json.loads((folder / "metrics.json").read_text())
    history = pd.read_csv(folder / "history.csv").drop(columns="seconds")
    found = {name: (folder / name).read_bytes() for name in ("model.safetensors", "verdicts.csv", "config.json")}
    assert not list(folder.rglob("*.part"))
    return {**found, "metrics": {k: v for k, v in metrics.items() if k not in TIMES}, "history": history.to_csv()}


def digests(folder):
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files}


class Gone(wrssl.Callback):
    """The process ends in this step, before its state is stored."""

    def __init__(self, step):
        self.step = step

    def on_step(self, trainer, outcome):
        if trainer.done == self.step:
            raise SystemExit


def stopped(data, out, step=5, **options):
    """A run that is gone in this step of the requested model."""
    with pytest.raises(SystemExit):
        fit(data, out, callbacks=[Gone(step)], **options)
    return out


@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
@pytest.mark.parametrize("weights", ["wr-instance", "wr"])
def test_trouble_with_the_disk_at_any_moment(weights, kill, small, whole, tmp_path, disk):
    with disk() as watched:
        fit(small, tmp_path / "whole", weights=weights)
    calls = len(watched.calls)
    assert watched.calls.count("replace") == 9 + STEPS * (3 if weights == "wr" else 1)
    # The settings; the first states; the middle; the results, of which metrics.json is the last.
    first = watched.calls.index("write_text")
    moments = [first, first + 2, first + 8, calls // 2, calls - 21, calls - 12, calls - 4, calls - 2, calls - 1]
    for at in moments[:: (1 if kill else 2)] if weights != "wr" else moments[3:5]:
        out = tmp_path / str(at)
        with disk(at, kill) as broken, pytest.raises(disk.Killed if kill else StorageError) as error:
            fit(small, out, weights=weights)
        assert len(broken.calls) > at
        started = (out / "config.json").exists()
        if not kill:
            advice = f"go on: wrssl fit --resume {out}" if started else "start again."
            assert str(error.value).endswith(f"make room, then {advice}")
        if started:
            resume_run(out)
        else:
            fit(small, out, weights=weights)  # counts as empty
        assert outcome(out) == whole(weights), at


def test_a_finished_run_is_not_changed(small, tmp_path):
    out = tmp_path / "run"
    result = fit(small, out)
    before = digests(tmp_path)
    for again in (resume_run(out), fit(small, out, resume=True), fit(small, out, resume=True, steps="auto")):
        np.testing.assert_array_equal(again.weights, result.weights)
        assert again.metrics == json.loads((out / "metrics.json").read_text())
    assert digests(tmp_path) == before


def test_before_the_first_state_a_run_starts_over(small, whole, tmp_path):
    out = stopped(small, tmp_path / "run", step=1)
    assert [path.name for path in (out / "state").iterdir()] == ["lock"]
    resume_run(out)
    assert outcome(out) == whole()


@pytest.mark.parametrize(("name", "before"), [("", 0), ("plain", STEPS), ("supervised", 2 * STEPS)])
def test_a_damaged_state_is_named_and_the_one_before_it_used(name, before, small, whole, tmp_path, disk):
    out = tmp_path / "run"
    with disk() as watched:
        fit(small, tmp_path / "whole", weights="wr")
    states = [number for number, call in enumerate(watched.calls) if call == "save_file"]
    with disk(states[before + 4], kill=True), pytest.raises(disk.Killed):  # in the fifth step of this model
        fit(small, out, weights="wr")
    older, newest = sorted((out / "state" / name).glob("0*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-7])
    with pytest.warns(StateWarning, match=re.escape(str(newest))) as said:
        resume_run(out)
    assert len(said) == 1
    assert f"step {int(older.name[:9])}" in str(said[0].message)
    assert outcome(out) == whole("wr")


def test_two_damaged_states_are_an_error(small, whole, tmp_path):
    out = stopped(small, tmp_path / "run")
    damaged = list((out / "state").glob("0*.safetensors"))
    assert len(damaged) == 2
    for path in damaged:
        path.write_bytes(b"")
    with pytest.raises(DataError) as error:
        resume_run(out)
    assert all(str(path) in str(error.value) for path in damaged)
    for path in damaged:
        path.unlink()
    resume_run(out)  # as the message says
    assert outcome(out) == whole()


def test_other_settings_do_not_go_on(small, tmp_path):
    out = stopped(small, tmp_path / "run")
    before = digests(out)
    for name, value in (("method", "pl"), ("steps", 7), ("seed", 1), ("lr", 0.1), ("weights", "none")):
        with pytest.raises(OptionError, match=f"begun with {name}="):
            fit(small, out, resume=True, **{name: value})
    assert digests(out) == before
    fit(small, out, resume=True, steps="auto")  # the stored number, not 2,000
    assert json.loads((out / "metrics.json").read_text())["optimizer_steps"] == STEPS


def test_settings_that_were_edited_do_not_go_on(small, tmp_path):
    out = stopped(small, tmp_path / "run")
    config = out / "config.json"
    text = config.read_text()
    config.write_text(json.dumps({**json.loads(text), "seed": 1}))
    with pytest.raises(DataError, match=r"config\.json are not those"):
        resume_run(out)
    config.write_text(text[: len(text) // 2])
    with pytest.raises(DataError, match=r"config\.json is damaged"):
        resume_run(out)
    config.write_text("[]")
    with pytest.raises(DataError, match=r"does not hold the settings"):
        resume_run(out)


def test_another_version_of_torch_is_said(small, tmp_path, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr("torch.__version__", "2.4.0")
        out = stopped(small, tmp_path / "run")
    with pytest.warns(StateWarning, match=r"begun with torch 2\.4\.0 and goes on with"):
        resume_run(out)


def test_the_median_time_of_a_step_survives(small, tmp_path):
    fit(small, tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    assert resume_run(tmp_path / "run").metrics["seconds_per_step"] > 0  # although no step was left to do


def test_an_own_module_goes_on_from_python_and_is_read_when_finished(small, tmp_path):
    def module():
        return nn.Sequential(nn.Linear(2, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))

    own, out = module(), tmp_path / "run"
    whole = fit(small, None, model=own)
    stopped(small, out, model=own)
    with pytest.raises(OptionError, match="from Python"):
        resume_run(out)
    fit(small, out, model=own, resume=True)
    again = fit(small, out, model=own, resume=True)
    np.testing.assert_array_equal(again.predict_proba(small.test[0]), whole.predict_proba(small.test[0]))
    assert type(own[1]) is nn.BatchNorm1d, "the user's module is not changed"
    looked_at = resume_run(out)
    assert looked_at.metrics["optimizer_steps"] == STEPS
    with pytest.raises(OptionError, match="your own module"):
        looked_at.predict(small.test[0])


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_the_pause_between_states_is_a_number(value, small, tmp_path, monkeypatch):
    monkeypatch.setenv("WRSSL_SAVE_EVERY", value)
    with pytest.raises(OptionError, match="WRSSL_SAVE_EVERY"):
        fit(small, tmp_path / "run")


def test_states_are_rare_where_they_are_wanted_rarely_or_take_long(small, tmp_path, monkeypatch):
    monkeypatch.setenv("WRSSL_SAVE_EVERY", "3600")
    out = stopped(small, tmp_path / "rarely")
    assert not list((out / "state").glob("0*"))
    flush = os.fsync

    def slowly(number):
        time.sleep(0.1)
        flush(number)

    monkeypatch.setenv("WRSSL_SAVE_EVERY", "1e-9")
    monkeypatch.setattr(os, "fsync", slowly)  # a state takes 0.2 s, so the next one is stored 4 s later
    out = stopped(small, tmp_path / "long")
    assert [path.name[:9] for path in (out / "state").glob("0*")] == ["000000001"]
