"""Training through the scikit-learn door."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

import wrssl
from wrssl.api import OptionError
from wrssl.data import TableScale
from wrssl.estimator import WRSSLClassifier


def test_attributes(clouds, fitted):
    X, y, _ = clouds
    pool = np.flatnonzero(y == -1)
    assert fitted.classes_.tolist() == [0, 1]
    assert (fitted.n_features_in_, hasattr(fitted, "feature_names_in_")) == (3, False)
    assert fitted.verdicts_["id"].tolist() == pool.tolist()
    assert fitted.weights_.shape == (len(pool),)
    assert fitted.verdicts_["weight"].to_numpy() == pytest.approx(fitted.weights_)
    assert set(fitted.verdicts_["verdict"]) <= {"keep", "doubt", "drop"}
    p = fitted.predict_proba(X)
    assert p.sum(1) == pytest.approx(np.ones(len(X)))
    assert np.array_equal(fitted.predict(X), p.argmax(1))


def test_foreign_rows_are_found_and_own_ones_classified(clouds, fitted):
    X, y, truth = clouds
    foreign = truth[y == -1] == 2
    assert fitted.weights_[foreign].max() < 0.5 < fitted.weights_[~foreign].mean()
    own = truth < 2
    assert fitted.score(X[own], truth[own]) > 0.95


def test_it_is_what_fit_returns_on_scaled_rows(clouds, fitted):
    """The columns differ by a factor of a million; the network must not see that."""
    X, y, _ = clouds
    known = y != -1
    scale = TableScale.fit(X[known], X[~known])
    scenario = wrssl.Scenario((scale.transform(X[known]), y[known]), scale.transform(X[~known]))
    expected = wrssl.fit(scenario, steps=40, seed=0, progress=False)
    assert np.array_equal(fitted.weights_, expected.weights)
    assert fitted.predict_proba(X) == pytest.approx(expected.predict_proba(scale.transform(X)), abs=1e-5)
    assert np.array_equal(fitted.result_.weights, expected.weights)


def test_a_row_gets_one_answer_whatever_else_is_asked(clouds, fitted):
    X, _, _ = clouds
    alone = np.concatenate([fitted.predict_proba(row[None]) for row in X])
    assert np.abs(alone - fitted.predict_proba(X)).max() < 1e-9


GIVEN = {
    "method": "pl", "weights": "wr-cluster", "bn": "frozen", "model": "mlp-nobn", "steps": 3, "device": "cpu",
    "gate": "cosine", "method_options": {"threshold": 0.5}, "weight_options": {"K": 3}, "batch_size": 7, "lr": 0.01,
    "head": "head", "threads": 2, "fast": False, "false_drop_rate": 0.2, "precision": "bf16-mixed",
    "embedder": "none", "views": 2, "weight_decay": 0.01,
}  # fmt: skip


def test_the_list_of_options_is_complete_and_holds_no_default():
    defaults = WRSSLClassifier().get_params()
    assert set(GIVEN) == set(defaults) - {"random_state", "verbose"}
    assert [name for name, value in GIVEN.items() if value == defaults[name]] == []


def test_all_options_reach_the_training(clouds, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # the bar is drawn as on a terminal
    X, y, _ = clouds
    config = WRSSLClassifier(**GIVEN, random_state=7, verbose=2).fit(X, y).result_.config
    assert {name: config[name] for name in (*GIVEN, "seed")} == GIVEN | {"seed": 7}
    assert "pl · wr-cluster · frozen" in capsys.readouterr().err
    # Without a pool there is nothing to weigh.
    known = y != -1
    given = {name: value for name, value in GIVEN.items() if name != "gate"}
    config = WRSSLClassifier(**given, random_state=7).fit(X[known], y[known]).result_.config
    without = {"method": "supervised", "weights": "none", "method_options": {}, "weight_options": {}}
    assert {name: config[name] for name in (*given, "seed")} == given | without | {"seed": 7}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("option", "value"), [("method", "magic"), ("steps", 0), ("bn", "none"), ("model", "huge")])
def test_a_wrong_option_is_one_sentence(option, value, clouds):
    X, y, _ = clouds
    with pytest.raises(OptionError):
        WRSSLClassifier(**{option: value}).fit(X, y)


def test_no_pool_at_all(clouds):
    X, _, truth = clouds
    own = truth < 2
    model = WRSSLClassifier(steps=30, random_state=0).fit(X[own], truth[own])
    assert model.weights_.shape == (0,)
    assert len(model.verdicts_) == len(model.result_.weights) == len(model.result_.verdicts) == 0
    assert "weight" in model.verdicts_.columns
    assert np.array_equal(model.transduction_, truth[own])
    assert model.score(X[own], truth[own]) > 0.95


@pytest.mark.parametrize(("labels", "pool"), [(2, 1), (2, 3), (3, 30), (10, 3), (20, 0), (20, 20)])
@pytest.mark.parametrize("weights", ["wr", "none"])
def test_few_rows(labels, pool, weights):
    random = np.random.default_rng(0)
    y = np.arange(labels + pool) % 2
    X = random.normal(size=(len(y), 2)) + 6 * y[:, None]
    hidden = np.where(np.arange(len(y)) < labels, y, -1)
    model = WRSSLClassifier(steps=12, weights=weights, random_state=1).fit(X, hidden)
    assert len(model.weights_) == pool
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, hidden) == 1.0


def test_images_have_four_axes():
    random = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = random.integers(0, 60, (40, 1, 8, 8), dtype=np.uint8)
    X[y == 1, :, :, 4:] += 150
    hidden = np.where(np.arange(40) < 20, y, -1)
    model = WRSSLClassifier(steps=12, random_state=0).fit(X, hidden)
    assert (model.n_features_in_, model.encoder_) == (64, None)
    assert model.score(X, y) > 0.9
    assert type(model.result_.model).__name__ == "SmallCNN"
    assert np.array_equal(model.predict(torch.from_numpy(X)), model.predict(X))
    for other, words in ((X[:, :, :6], r"shape \(1, 8, 8\), not \(1, 6, 8\)"), (X[0], "not")):
        with pytest.raises(ValueError, match=words):
            model.predict(other)
    with pytest.raises(ValueError, match="3"):
        WRSSLClassifier(steps=3).fit(X[:, 0], hidden)


def test_not_fitted():
    for method in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(WRSSLClassifier(), method)(np.zeros((2, 2)))


def test_in_another_thread(clouds):
    X, y, _ = clouds
    model = WRSSLClassifier(weights="none", steps=5, random_state=0)
    thread = threading.Thread(target=model.fit, args=(X, y))
    thread.start()
    thread.join()
    there = model.predict_proba(X)
    assert np.array_equal(there, model.fit(X, y).predict_proba(X))
