"""A scenario of data frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wrssl
from wrssl.data.frames import FrameEncoder
from wrssl.errors import DataError


def table(n, seed=0):
    random = np.random.default_rng(seed)
    color = random.choice(["red", "green"], n)
    return pd.DataFrame({"size": random.normal(50, 10, n), "color": color, "old": random.random(n) < 0.5})


def labels(frame):
    return np.where((frame["color"] == "red").to_numpy(), "apple", "pear")


def test_frames_are_encoded_by_labeled_rows_and_pool():
    known, pool, held = table(30), table(50, 1), table(20, 2)
    scenario = wrssl.Scenario((known, labels(known)), pool, (held, labels(held)))
    encoder = FrameEncoder.fit(known, pool)
    assert scenario.encoder == encoder
    np.testing.assert_array_equal(scenario.labeled[0].numpy(), encoder.transform(known))
    np.testing.assert_array_equal(scenario.unlabeled.numpy(), encoder.transform(pool))
    np.testing.assert_array_equal(scenario.validation[0].numpy(), encoder.transform(held))
    assert scenario.test is None


def test_a_stored_run_takes_data_frames(tmp_path):
    known, pool, new = table(40), table(60, 1), table(30, 3)
    result = wrssl.fit(
        wrssl.Scenario((known, labels(known)), pool), weights="none", steps=60, out=tmp_path / "RUN", progress=False
    )
    assert (result.predict(new) == labels(new)).mean() > 0.9
    shuffled = new[["old", "size", "color"]]
    np.testing.assert_array_equal(wrssl.load(tmp_path / "RUN").predict(shuffled), result.predict(new))
    assert len(result.judge(new)) == 30
    with pytest.raises(DataError, match="'old'"):
        result.predict(new.drop(columns="old"))


def test_other_parts_must_be_frames_too():
    known = table(10)
    with pytest.raises(DataError, match="all parts as data frames"):
        wrssl.Scenario((known, labels(known)), np.zeros((5, 3)))


def test_arrays_are_left_alone():
    scenario = wrssl.Scenario((np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]), pd.DataFrame(np.zeros((5, 2))))
    assert scenario.encoder is None
    assert scenario.labeled[0][1, 0] == 2
