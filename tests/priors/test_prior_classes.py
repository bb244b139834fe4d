"""Comparison within classes: a class that is frequent in the pool is not foreign."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import wrssl.priors.crossfit as module
from wrssl.priors import fit_prior
from wrssl.priors.classes import RIDGE, classifier, offsets
from wrssl.priors.crossfit import cross_fit
from wrssl.priors.samples import Samples, draw_folds

CENTERS = np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3], [-4, -4, -4]], dtype=np.float32)  # the last one is foreign


def rows_of(classes: np.ndarray, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal((len(classes), 3), dtype=np.float32)
    return (CENTERS[classes] + noise).astype(np.float32)


def test_offsets_by_hand():
    scores, predicted = np.array([1.0, 2.0, 3.0, 7.0, 9.0]), np.array([0, 0, 0, 2, 2])
    # The median is 3: class 0 has −2, −1, 0, class 2 has 4 and 6, class 1 none.
    np.testing.assert_allclose(offsets(scores, predicted, 4), [-3 / 13, 0, 10 / 12, 0])


def test_equal_scores_have_no_offset():
    assert (offsets(np.full(7, -0.1), np.arange(7) % 3, 3) == 0).all()


def test_logits_are_those_of_a_ridge_multinomial_regression():
    labels = np.arange(90) % 3
    rows = rows_of(labels, 0)
    x = rows.astype(np.float64)

    def loss(u: np.ndarray) -> float:
        W, b = u[:9].reshape(3, 3), u[9:]
        z = x @ W.T + b
        z = z - z.max(1, keepdims=True)
        picked = z[np.arange(90), labels] - np.log(np.exp(z).sum(1))
        return float(-picked.mean() + RIDGE / 2 * (W**2).sum())

    found = minimize(loss, np.zeros(12), method="BFGS", options={"gtol": 1e-7}).x
    expected = x @ found[:9].reshape(3, 3).T + found[9:]
    got = classifier(rows, labels, 3)(rows)
    # A constant per row has no meaning.
    np.testing.assert_allclose(got - got.mean(1, keepdims=True), expected - expected.mean(1, keepdims=True), atol=3e-2)


def test_absent_classes_are_never_predicted():
    labels = np.arange(40) % 2 * 2  # 0 and 2
    logits = classifier(rows_of(labels, 0), labels, 4)(CENTERS[[0, 2, 0]])
    assert logits.shape == (3, 4)
    assert np.isneginf(logits[:, [1, 3]]).all()
    assert logits.argmax(1).tolist() == [0, 2, 0]


def test_a_single_class_needs_no_regression():
    labels = np.zeros(9, dtype=np.int64)
    assert classifier(rows_of(labels, 0), labels, 1)(rows_of(labels, 1)).tolist() == [[0]] * 9


@pytest.mark.parametrize(("number", "gain"), [(60, 0.1), (1500, 0.5)])
def test_a_frequent_class_keeps_its_weight_and_foreign_rows_lose_theirs(number, gain, monkeypatch):
    known = np.arange(number) % 3
    own = np.r_[np.zeros(1600, dtype=int), np.ones(200, dtype=int), np.full(200, 2)]
    members = np.r_[own, np.full(1000, 3)]
    reference, pool = torch.from_numpy(rows_of(known, 0)), torch.from_numpy(rows_of(members, 1))
    prior = fit_prior(reference, known, pool, 0)
    monkeypatch.setattr(module, "offsets", lambda scores, predicted, classes: np.zeros(classes))
    without = fit_prior(reference, known, pool, 0)
    weight = prior.weight(slice(None))
    assert weight[members == 0].mean() > without.weight(slice(None))[members == 0].mean() + gain
    assert weight[members == 3].mean() < 0.1
    # 5 %, up to what so many references know about that quantile.
    dropped = prior.p(slice(None)) <= 0.05
    assert dropped[members == 0].mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / number)
    assert dropped[members == 3].mean() > 0.9


def test_new_rows_get_the_offset_of_their_predicted_class():
    known = np.arange(300) % 3
    members = np.r_[np.zeros(400, dtype=int), np.ones(50, dtype=int), np.full(50, 2)]
    samples = Samples(rows_of(known, 0), known, rows_of(members, 1), *draw_folds(known, 500, np.random.default_rng(0)))
    models, _ = cross_fit(samples, ("linear",))
    rows = rows_of(known, 5)
    per_class = [models(rows)[known == c].mean() for c in range(3)]
    # Class 0 fills four fifths of the pool: its score alone, without the offset, would be far below the others.
    assert max(per_class) - min(per_class) < 0.3 * np.ptp(models.offsets)
    assert models.offsets.argmin() == 0
