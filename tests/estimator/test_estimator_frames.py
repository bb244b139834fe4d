"""Data frames in, with columns of every kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from wrssl.api import DataError
from wrssl.estimator import WRSSLClassifier

COLUMNS = ["near", "far", "tiny"]


def quick() -> WRSSLClassifier:
    return WRSSLClassifier(weights="none", steps=30, random_state=0)


@pytest.fixture(scope="module")
def shops() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """The class shows in a text column and in a number with gaps."""
    random = np.random.default_rng(0)
    truth = np.arange(90) % 2
    frame = pd.DataFrame(
        {
            "town": np.where(truth, "Köln", "Bonn"),
            "sales": 1e5 * truth + 2e4 * random.normal(size=90),
            "open": random.random(90) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, 90), unit="D"),
        }
    )
    frame.loc[random.random(90) < 0.2, "sales"] = None
    frame.loc[random.random(90) < 0.2, "town"] = None
    return frame, np.where(np.arange(90) < 30, truth, -1), truth


def test_columns_of_every_kind(shops):
    frame, y, truth = shops
    model = quick().fit(frame, y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.n_features_in_ == 4
    assert model.score(frame, truth) > 0.9
    names = ["town=Bonn", "town=Köln", "town (missing)", "sales", "sales (missing)", "open", "since"]
    assert model.encoder_.feature_names == names
    # Rows are numbered, whatever the index says.
    again = quick().fit(frame.set_index(np.arange(90)[::-1]), y)
    assert again.verdicts_.equals(model.verdicts_)
    assert again.verdicts_["id"].tolist() == list(range(30, 90))


def test_numbers_in_a_frame_are_numbers_in_an_array(clouds, fitted):
    X, y, _ = clouds
    frame = pd.DataFrame(X, columns=COLUMNS)
    model = WRSSLClassifier(steps=40, random_state=0).fit(frame, y)
    assert np.array_equal(model.predict_proba(frame), fitted.predict_proba(X))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict_proba(X), fitted.predict_proba(X))
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert np.array_equal(fitted.predict_proba(frame), fitted.predict_proba(X))


def test_an_array_after_a_frame_with_text(shops):
    frame, y, _ = shops
    model = quick().fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict(frame.to_numpy()), model.predict(frame))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda f: f[f.columns[::-1]], ValueError, "same order"),
        (lambda f: f.drop(columns="open"), ValueError, "now missing"),
        (lambda f: f.assign(more=1), ValueError, "unseen at fit time"),
        (lambda f: f.assign(sales="many"), DataError, "'sales' should hold numbers"),
    ],
)
def test_other_columns(change, error, words, shops):
    frame, y, _ = shops
    with pytest.raises(error, match=words):
        quick().set_params(steps=2).fit(frame, y).predict(change(frame))


def test_names_that_are_numbers_go_by_name_too(clouds, fitted):
    X, y, _ = clouds
    frame = pd.DataFrame(X)
    model = WRSSLClassifier(steps=40, random_state=0).fit(frame, y)
    assert not hasattr(model, "feature_names_in_")
    assert np.array_equal(model.predict_proba(frame[[2, 0, 1]]), fitted.predict_proba(X))


def test_in_a_pipeline_after_other_people_encoders(shops):
    frame, y, truth = shops
    columns = make_column_transformer((StandardScaler(), ["since_days"]), (OneHotEncoder(), ["town", "open"]))
    days = frame.assign(since_days=(frame["since"] - frame["since"].min()).dt.days).fillna({"town": "?"})
    pipe = make_pipeline(columns, quick()).fit(days, y)
    assert pipe.score(days, truth) > 0.8
    assert len(pipe[-1].verdicts_) == 60
