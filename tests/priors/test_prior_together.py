"""Several fits of a kind on the same rows: the same numbers, bit by bit, and features computed once."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.priors.cross import FOLDS, cross
from wrssl.priors.kinds import DEFAULT, KINDS
from wrssl.priors.kinds.kernel import Fourier
from wrssl.priors.kinds.logistic import BLOCK, LogisticScore, logistic, together
from wrssl.priors.samples import Samples, shuffled


def fits(normal, name, count=3):
    """Fits of one kind to different samples, as those of the folds are."""
    labels = np.arange(40) % 2
    return [KINDS[name](Samples(normal(40, 4, k) + 0.5, labels, normal(90, 4, 50 + k)), 7) for k in range(count)]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("rows", [1, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_together_they_say_what_each_says_alone(normal, name, rows):
    scores, seen = fits(normal, name), normal(rows, 4, 99)
    said = together(scores, seen)
    assert len(said) == len(scores)
    for score, z in zip(scores, said, strict=True):
        assert z.dtype == np.float64
        assert z.tobytes() == score(seen).tobytes()
    assert not np.array_equal(said[0], said[1]), "they are different fits"


class Counted:
    """Features that count how often they are asked for."""

    def __init__(self):
        self.asked = 0

    def __call__(self, rows):
        self.asked += 1
        return np.square(rows)


def test_shared_features_are_computed_once_and_others_anew(normal):
    shared, own = Counted(), Counted()
    samples = Samples(normal(30, 4, 1), np.arange(30) % 2, normal(60, 4, 2))
    scores = [logistic(samples, features, 0.1) for features in (shared, shared, own, shared)]
    shared.asked = own.asked = 0
    said = together(scores, normal(10, 4, 3))
    assert (shared.asked, own.asked) == (2, 1), "the last ones are kept, not all"
    assert np.array_equal(said[0], said[3])


def test_scores_without_features_take_part(normal):
    scores = [fits(normal, "linear", 1)[0], lambda rows: rows[:, 0].astype(np.float64), fits(normal, "kernel", 1)[0]]
    rows = normal(9, 4, 3)
    for score, z in zip(scores, together(scores, rows), strict=True):
        assert np.array_equal(z, score(rows))


def test_features_stay_as_they_are(normal):
    (score,) = fits(normal, "linear", 1)
    phi = normal(20, 4, 5)
    before = phi.copy()
    score.of_features(phi)
    assert np.array_equal(phi, before)


def test_the_score_by_its_formula(normal):
    phi, centre, scale, slope = normal(600, 4, 1), normal(4, 1, 2)[:, 0], np.float32([1, 2, 4, 8]), normal(1, 4, 3)
    score = LogisticScore(lambda rows: rows, centre, scale, slope, np.float32([0.25]))
    np.testing.assert_allclose(score(phi), ((phi - centre) / scale) @ slope[0] + 0.25, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in DEFAULT if name != "linear"])
def test_the_folds_share_their_features(toy, monkeypatch, name):
    """What makes a prior of a large pool affordable: of five fits of a kind one computes the features."""
    samples, own, _ = toy()
    crossed = cross(samples, [name], np.random.default_rng(0))
    features = [models[0].features for models in crossed._models]
    assert len(features) == FOLDS
    assert all(one == features[0] for one in features)
    calls = []
    kind = type(features[0])
    if kind is Fourier:
        monkeypatch.setattr(
            Fourier, "__call__", lambda self, rows, old=Fourier.__call__: calls.append(1) or old(self, rows)
        )
        crossed.score(own)
        assert len(calls) == 1


def test_random_features_are_equal_where_all_that_they_follow_from_is():
    assert Fourier(0.3, 5, 1) == Fourier(0.3, 5, 1)
    for other in (Fourier(1.0, 5, 1), Fourier(0.3, 6, 1), Fourier(0.3, 5, 2)):
        assert Fourier(0.3, 5, 1) != other


@pytest.mark.parametrize("size", [1, 2, 25, 4_321])
def test_the_small_shuffle_is_the_permutation_of_the_generator(size):
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    found = shuffled(size, one)
    assert found.dtype == np.int32
    assert found.tolist() == other.permutation(size).tolist()
    assert one.integers(2**31) == other.integers(2**31), "and the stream goes on as it would"
