"""Curves for TensorBoard."""

from __future__ import annotations

import sys

import pytest

import wrssl
from wrssl.api import OptionError
from wrssl.training import TensorBoard


@pytest.mark.filterwarnings("ignore")  # of the reader of events, which is not ours
def test_every_number_of_the_history_becomes_a_point(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    data = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
    result = wrssl.fit(data, weights="none", steps=40, callbacks=[TensorBoard(tmp_path)], progress=False)
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    points = [(point.step, pytest.approx(point.value, rel=1e-6)) for point in events.Scalars("val_accuracy")]
    assert list(zip(result.history["step"], result.history["val_accuracy"], strict=True)) == points
    assert "gate_open" not in events.Tags()["scalars"]  # there was no gate


def test_without_tensorboard_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(OptionError, match="pip install tensorboard"):
        TensorBoard(tmp_path)
