"""scikit-learn's tools around the classifier."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from wrssl.estimator import WRSSLClassifier
from wrssl.models import init_default


def quick(**options) -> WRSSLClassifier:
    return WRSSLClassifier(**{"weights": "none", "steps": 30, "random_state": 0} | options)


def test_pickle_keeps_everything(clouds, fitted):
    X, _, _ = clouds
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.verdicts_.equals(fitted.verdicts_)
    assert np.array_equal(again.weights_, fitted.weights_)


def test_clone_keeps_the_options_only(fitted):
    copy = clone(fitted.set_params(bn="weighted"))
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "classes_")
    assert is_classifier(copy)


def test_an_own_module_is_cloned_and_left_alone(clouds):
    X, y, _ = clouds
    own = nn.Sequential(nn.Linear(3, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    init_default(own, torch.Generator().manual_seed(0))
    before = [p.detach().clone() for p in own.parameters()]
    model = clone(quick(model=own, steps=60)).fit(X, y)
    assert model.score(X, y) > 0.9
    assert all(np.array_equal(a, b.detach()) for a, b in zip(before, own.parameters(), strict=True))


def test_pipeline(clouds):
    X, y, _ = clouds
    pipe = make_pipeline(StandardScaler(), quick()).fit(X, y)
    assert pipe.score(X, y) > 0.9
    assert len(pipe[-1].weights_) == (y == -1).sum()


def test_grid_search_scores_by_the_labels(clouds):
    X, y, _ = clouds
    search = GridSearchCV(quick(steps=8), {"weights": ["none", "wr"], "bn": ["frozen", "weighted"]}, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert set(search.best_params_) == {"weights", "bn"}
    assert search.score(X, y) == search.best_estimator_.score(X, y)


def test_cross_validation(clouds):
    X, y, _ = clouds
    scores = cross_val_score(quick(), X, y, cv=3)
    assert scores.min() > 0.8
    # Names of classes beside −1 cannot be sorted, so scikit-learn has to be told how to split.
    named = np.array(["east", "west", -1], dtype=object)[y]
    assert cross_val_score(quick(), X, named, cv=KFold(3, shuffle=True, random_state=0)).min() > 0.8


@pytest.mark.parametrize("options", [{"steps": 5}, {"weights": "none", "method": "mt"}])
def test_set_params(options, clouds):
    X, y, _ = clouds
    model = WRSSLClassifier(steps=2, random_state=0).set_params(**options)
    assert {name: model.fit(X, y).result_.config[name] for name in options} == options
