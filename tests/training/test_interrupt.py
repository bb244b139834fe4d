"""Ctrl-C: the step is finished, the state stored, and the run goes on exactly where it stopped."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
import torch

import wrssl
from wrssl.training.callbacks import Callback
from wrssl.training.interrupt import Interrupted, patient_interrupt
from wrssl.training.resume import resume_run


class PressCtrlC(Callback):
    """After so many steps."""

    def __init__(self, step):
        self.step = step

    def on_step(self, step, outcome):
        if step + 1 == self.step:
            signal.raise_signal(signal.SIGINT)


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
            assert (mine, asked()) == ([1], False)
    finally:
        signal.signal(signal.SIGINT, before)
    answers = []

    def elsewhere():
        with patient_interrupt() as asked:
            answers.append(asked())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert answers == [False]
