"""What counts as a label, as no label, and as a mistake."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wrssl.api import DataError
from wrssl.estimator import WRSSLClassifier
from wrssl.estimator.labels import is_labeled

QUICK = {"weights": "none", "steps": 5, "random_state": 0}
NAMES = np.array(["east", "west", -1], dtype=object)  # by class; the last one is that of −1


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([0, -1, 2], [1, 0, 1]),
        ([0.0, -1.0, 2.0], [1, 0, 1]),
        (np.array([1, -1], dtype=np.int8), [1, 0]),
        ([True, False], [1, 1]),
        (["a", "b"], [1, 1]),
        (np.array(["a", -1, "b"], dtype=object), [1, 0, 1]),
        (np.array(["a", -1.0, np.int64(-1)], dtype=object), [1, 0, 0]),
        (pd.Series(["a", -1, "b"]).to_numpy(), [1, 0, 1]),
    ],
)
def test_minus_one_is_no_label(y, expected):
    assert is_labeled(np.asarray(y)).astype(int).tolist() == expected


def test_names_as_classes_give_what_numbers_give(clouds, fitted):
    X, y, _ = clouds
    named = WRSSLClassifier(steps=40, random_state=0).fit(X, NAMES[y])
    assert named.classes_.tolist() == ["east", "west"]
    assert np.array_equal(named.predict(X), NAMES[fitted.predict(X)])
    assert np.array_equal(named.predict_proba(X), fitted.predict_proba(X))
    assert named.transduction_.tolist() == NAMES[fitted.transduction_].tolist()
    assert named.verdicts_["pseudo_label"].tolist() == NAMES[fitted.verdicts_["pseudo_label"]].tolist()
    assert named.score(X, NAMES[y]) == fitted.score(X, y)


def test_the_label_of_every_row(clouds, fitted):
    X, y, _ = clouds
    assert np.array_equal(fitted.transduction_[y == -1], fitted.predict(X[y == -1]))
    assert fitted.transduction_.dtype == y.dtype
    # A given label stays, whatever the model makes of the row.
    odd = np.flatnonzero(y == 1)[0]
    y = np.where(np.arange(len(y)) == odd, 0, y)
    model = WRSSLClassifier(weights="none", steps=30, random_state=0).fit(X, y)
    assert model.predict(X[[odd]]) == [1]
    assert np.array_equal(model.transduction_[y != -1], y[y != -1])


def test_score_ignores_rows_without_a_label(clouds, fitted):
    X, _, truth = clouds
    own = np.flatnonzero(truth < 2)[:20]
    wrong = np.where(np.arange(20) < 5, 1 - fitted.predict(X[own]), fitted.predict(X[own]))
    hidden = np.where(np.arange(20) < 4, -1, wrong)
    assert fitted.score(X[own], wrong) == 15 / 20
    assert fitted.score(X[own], hidden) == 15 / 16
    assert fitted.score(X[own], hidden, sample_weight=[9.0] * 4 + [15.0] + [1.0] * 15) == 15 / 30
    with pytest.raises(ValueError, match="No row has a label"):
        fitted.score(X[:3], [-1, -1, -1])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([-1] * 6, "All rows are unlabeled"),
        ([1, 1, 1, -1, -1, -1], "only one class, 1"),
        (["a", "b", -1, "a", "b", -1], "text '-1'; keep -1 a number"),
        (np.array(["a", "b", "-1", "a", "b", -1], dtype=object), "text '-1'"),
        (np.array(["a", 7, -1, "a", 7, -1], dtype=object), "mix numbers and text"),
        ([0.5, 1.7, -1, 0.3, 2.2, 9.1], "Unknown label type"),
        ([0, 1], "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
    ],
)
@pytest.mark.parametrize("kind", ["array", "frame", "images"])
def test_labels_that_cannot_be_used(y, words, kind):
    X = np.random.default_rng(0).normal(size=(6, 4))
    X = {"array": X, "frame": pd.DataFrame(X, columns=list("abcd")), "images": X.reshape(6, 1, 2, 2)}[kind]
    with pytest.raises(ValueError, match=words) as caught:
        WRSSLClassifier(**QUICK).fit(X, y)
    if "label" in words and "Unknown" not in words:
        assert isinstance(caught.value, DataError)


def test_labels_are_not_changed(clouds):
    X, y, _ = clouds
    before = X.copy(), y.copy()
    WRSSLClassifier(**QUICK).fit(X, y)
    assert np.array_equal(X, before[0])
    assert np.array_equal(y, before[1])
