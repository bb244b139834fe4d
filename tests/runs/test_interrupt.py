"""Ctrl-C and SIGTERM: the step is finished, the state stored, and the run goes on exactly where it stopped."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
import safetensors.torch
import torch

import wrssl
from wrssl.runs.interrupt import Interrupted, patient_interrupt, termination
from wrssl.training import resume_run


class PressCtrlC(wrssl.Callback):
    """After so many steps; or another signal."""

    def __init__(self, step, number=signal.SIGINT):
        self.step, self.number = step, number

    def on_step(self, trainer, outcome):
        if trainer.done == self.step:
            signal.raise_signal(self.number)


def fit(out, **options):
    data = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
    return wrssl.fit(data, steps=60, weights="wr-instance", out=out, progress=False, **options)


@pytest.mark.parametrize("step", [7, 21, 60])
def test_a_stopped_run_goes_on_exactly_where_it_stopped(step, tmp_path, capsys):
    whole = fit(tmp_path / "whole")
    with pytest.raises(Interrupted, match="wrssl fit --resume"):
        fit(tmp_path / "parts", callbacks=[PressCtrlC(step)])
    assert "Stopping" in capsys.readouterr().err
    assert not (tmp_path / "parts" / "metrics.json").exists()
    again = resume_run(tmp_path / "parts")
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
    np.testing.assert_array_equal(whole.weights, again.weights)
    numbers = whole.history.columns.drop("seconds")
    np.testing.assert_array_equal(whole.history[numbers].to_numpy(float), again.history[numbers].to_numpy(float))


def test_sigterm_stops_alike(tmp_path, capsys):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="Stopped after step 8 of 60; go on: wrssl fit --resume") as stop:
        fit(tmp_path / "parts", callbacks=[PressCtrlC(8, signal.SIGTERM)])
    assert stop.value.exit_code == 143
    assert "a second signal stops at once" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before
    assert [path.name[:9] for path in (tmp_path / "parts" / "state").glob("0*")] == ["000000008"]


def test_a_signal_while_the_last_state_is_written_is_not_forgotten(tmp_path, monkeypatch):
    save, saved = safetensors.torch.save_file, []

    def slowly(*arguments, **options):
        saved.append(arguments)
        signal.raise_signal(signal.SIGTERM)
        save(*arguments, **options)

    monkeypatch.setattr(safetensors.torch, "save_file", slowly)
    monkeypatch.setenv("WRSSL_SAVE_EVERY", "3600")  # only the last state is written
    with pytest.raises(Interrupted, match="Stopped after step 60 of 60"):
        fit(tmp_path / "run")
    assert len(saved) == 1
    assert [path.name[:9] for path in (tmp_path / "run" / "state").glob("0*")] == ["000000060"]


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_any_second_signal_stops_at_once(first, second):
    with patient_interrupt() as asked:
        signal.raise_signal(first)
        assert asked() == first
        with pytest.raises(KeyboardInterrupt) as stop:
            signal.raise_signal(second)
    assert isinstance(stop.value, Interrupted) == (second == signal.SIGTERM)


def test_outside_of_training_sigterm_ends_the_program_with_a_sentence():
    before = signal.getsignal(signal.SIGTERM)
    with termination():
        with pytest.raises(Interrupted, match="Stopped") as stop:
            signal.raise_signal(signal.SIGTERM)
        with patient_interrupt() as asked:  # and within training it waits for the step
            signal.raise_signal(signal.SIGTERM)
            assert asked() == signal.SIGTERM
    assert stop.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_without_a_run_directory_nothing_is_promised():
    with pytest.raises(Interrupted, match="nothing was kept"):
        fit(None, callbacks=[PressCtrlC(3)])


def test_the_second_one_stops_at_once_and_the_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    with patient_interrupt() as asked:
        assert not asked()
        signal.raise_signal(signal.SIGINT)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_handlers_of_others_and_other_threads_are_left_alone():
    mine = []
    before = signal.signal(signal.SIGINT, lambda *_: mine.append(1))
    try:
        with patient_interrupt() as asked:
            signal.raise_signal(signal.SIGINT)
            assert (mine, asked()) == ([1], 0)
    finally:
        signal.signal(signal.SIGINT, before)
    answers = []

    def elsewhere():
        with patient_interrupt() as asked:
            answers.append(asked())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert answers == [0]
