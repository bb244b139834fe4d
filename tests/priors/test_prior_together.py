"""Several fits of a kind on the same rows: the same numbers, bit by bit, and features computed once."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.priors import DEFAULT
from wrssl.priors.crossfit import cross_fit
from wrssl.priors.kinds.logistic import BLOCK, Fourier, LogisticScore, logistic, score_together
from wrssl.priors.samples import FOLDS, Samples


@pytest.fixture
def fits(normal, parts, fitted):
    """Fits of one kind to different samples, as those of the folds are."""

    def make(name, count=3):
        labels = np.arange(40) % 2
        samples = [parts(normal(40, 4, k) + 0.5, labels, normal(90, 4, 50 + k)) for k in range(count)]
        return [fitted(name, part, 7) for part in samples]

    return make


@pytest.mark.parametrize("name", [*DEFAULT, "neighbours", "energy", "trees"])
@pytest.mark.parametrize("rows", [1, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_scored_together_they_return_what_each_returns_alone(normal, fits, name, rows):
    scores, seen = fits(name), normal(rows, 4, 99)
    found = score_together(scores, seen)
    assert len(found) == len(scores)
    for score, z in zip(scores, found, strict=True):
        assert z.dtype == np.float64
        assert z.tobytes() == score(seen).tobytes()
    assert not np.array_equal(found[0], found[1]), "they are different fits"


class Counted:
    """Features that count how often they are computed."""

    def __init__(self):
        self.calls = 0

    def __call__(self, rows):
        self.calls += 1
        return np.square(rows)


def test_shared_features_are_computed_once_and_others_anew(normal):
    shared, own = Counted(), Counted()
    known, pool = normal(30, 4, 1), normal(60, 4, 2)
    scores = [logistic(known, pool, features, 0.1) for features in (shared, shared, own, shared)]
    shared.calls = own.calls = 0
    found = score_together(scores, normal(10, 4, 3))
    assert (shared.calls, own.calls) == (2, 1), "the last ones are kept, not all"
    assert np.array_equal(found[0], found[3])


def test_scores_without_features_take_part(normal, fits):
    scores = [*fits("linear", 1), lambda rows: rows[:, 0].astype(np.float64), *fits("kernel", 1)]
    rows = normal(9, 4, 3)
    for score, z in zip(scores, score_together(scores, rows), strict=True):
        assert np.array_equal(z, score(rows))


def test_features_stay_as_they_are(normal, fits):
    (score,) = fits("linear", 1)
    phi = normal(20, 4, 5)
    before = phi.copy()
    score.of_features(phi)
    assert np.array_equal(phi, before)


def test_the_score_by_its_formula(normal):
    phi, center, scale, slope = normal(600, 4, 1), normal(4, 1, 2)[:, 0], np.float32([1, 2, 4, 8]), normal(1, 4, 3)
    score = LogisticScore(lambda rows: rows, center, scale, slope, np.float32([0.25]))
    np.testing.assert_allclose(score(phi), ((phi - center) / scale) @ slope[0] + 0.25, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in DEFAULT if name != "linear"])
def test_the_folds_share_their_features(toy, monkeypatch, name):
    """What makes a prior of a large pool affordable: of five fits of a kind one computes the features."""
    parts, own, _ = toy()
    folds = (np.arange(len(rows)) % FOLDS for rows in (parts.known, parts.pool))
    models, _ = cross_fit(Samples(*parts, 0, *folds), [name])
    features = [scores[0].features for scores in models.scores]
    assert len(features) == FOLDS
    assert all(one == features[0] for one in features)
    calls = []
    kind = type(features[0])
    if kind is Fourier:
        monkeypatch.setattr(
            Fourier, "__call__", lambda self, rows, old=Fourier.__call__: calls.append(1) or old(self, rows)
        )
        models(own)
        assert len(calls) == 1


def test_random_features_are_equal_where_all_that_they_follow_from_is():
    assert Fourier(0.3, 5, 1) == Fourier(0.3, 5, 1)
    for other in (Fourier(1.0, 5, 1), Fourier(0.3, 6, 1), Fourier(0.3, 5, 2)):
        assert Fourier(0.3, 5, 1) != other
