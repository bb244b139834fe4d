"""Out of fold, really: kinds that remember what they were fitted to, and all sums done a second time."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.priors.cross import FOLDS, balanced_folds, cross
from wrssl.priors.kinds import KINDS
from wrssl.priors.samples import Samples
from wrssl.priors.stack import log_loss, stack


def numbered(n, m):
    """Rows that tell who they are: 0 … n−1 in the reference, whose class is the number modulo 3, 1000 … in the pool."""
    known, pool = (np.arange(start, start + size, dtype=np.float32)[:, None] for start, size in ((0, n), (1000, m)))
    return Samples(known, np.arange(n) % 3, pool)


class Remembering:
    """A kind that scores 1 what it was fitted to and 0 everything else, and keeps a list of its fits."""

    def __init__(self):
        self.fits: list[tuple[Samples, int, list[int]]] = []

    def __call__(self, samples, seed):
        fitted, asked = {int(x) for x in np.concatenate([samples.known, samples.pool])[:, 0]}, []
        self.fits.append((samples, seed, asked))

        def score(rows):
            asked.extend(int(x) for x in rows[:, 0])
            return np.array([float(int(x) in fitted) for x in rows[:, 0]])

        return score


@pytest.mark.parametrize(("n", "m"), [(10, 10), (23, 101)])
def test_no_row_is_judged_by_a_model_that_was_fitted_to_it(monkeypatch, n, m):
    memory = Remembering()
    monkeypatch.setitem(KINDS, "memory", memory)
    crossed = cross(numbered(n, m), ("memory",), np.random.default_rng(0))
    everybody = {*range(n), *range(1000, 1000 + m)}
    assert len(memory.fits) == FOLDS
    for samples, _, asked in memory.fits:
        fitted = [int(x) for x in np.concatenate([samples.known, samples.pool])[:, 0]]
        assert not set(fitted) & set(asked)
        assert set(fitted) | set(asked) == everybody, "and to everybody else"
        assert len(fitted) + len(asked) == len(everybody)
        assert len(asked) == pytest.approx((n + m) / FOLDS, abs=2)
        assert samples.labels.tolist() == [int(x) % 3 for x in samples.known[:, 0]], "labels go with their rows"
    asked = [row for _, _, rows in memory.fits for row in rows]
    assert sorted(asked) == sorted(everybody), "everybody is judged once"
    # Nobody was remembered, so nothing tells anybody apart.
    assert len(np.unique(np.r_[crossed.known, crossed.pool])) == 1
    assert crossed.log_loss == pytest.approx(np.log(2))


def test_kinds_see_the_same_folds_and_seed(monkeypatch):
    first, second = Remembering(), Remembering()
    monkeypatch.setitem(KINDS, "one", first)
    monkeypatch.setitem(KINDS, "two", second)
    cross(numbered(20, 30), ("one", "two"), np.random.default_rng(1))
    for (samples, seed, _), (others, again, _) in zip(first.fits, second.fits, strict=True):
        np.testing.assert_array_equal(samples.known, others.known)
        np.testing.assert_array_equal(samples.pool, others.pool)
        assert seed == again


def by_hand(fits, samples, names, rows):
    """Out-of-fold scores, and those of new rows, from the models that a fit of every kind and fold left behind."""
    known, pool = np.full((len(samples.known), len(names)), np.nan), np.full((len(samples.pool), len(names)), np.nan)
    fresh = np.zeros((len(rows), len(names)))
    for number, name in enumerate(names):
        for part, model in fits[name]:
            left_out = [
                np.array([i for i, row in enumerate(whole) if not (row == rest).all(1).any()])
                for whole, rest in ((samples.known, part.known), (samples.pool, part.pool))
            ]
            there = model(samples.pool[left_out[1]]).astype(np.float64)
            known[left_out[0], number] = (model(samples.known[left_out[0]]) - there.mean()) / there.std()
            pool[left_out[1], number] = (there - there.mean()) / there.std()
            fresh[:, number] += (model(rows) - there.mean()) / there.std() / FOLDS
    return known, pool, fresh


def test_scores_are_those_of_the_fold_models_by_hand(toy, monkeypatch):
    samples, own, foreign = toy(n=150, m=90)
    names, fits = ("linear", "neighbours", "reversed"), {}

    def recorded(name, kind):
        def fit(part, seed):
            model = kind(part, seed)
            fits.setdefault(name, []).append((part, model))
            return model

        return fit

    def reverse(part, seed, linear=KINDS["linear"]):
        model = linear(part, seed)
        return lambda rows: -model(rows)

    monkeypatch.setitem(KINDS, "reversed", reverse)
    for name in names:
        monkeypatch.setitem(KINDS, name, recorded(name, KINDS[name]))
    one_class = Samples(samples.known, np.zeros_like(samples.labels), samples.pool)  # offsets have their own test
    crossed = cross(one_class, names, np.random.default_rng(2))
    rows = np.concatenate([own, foreign])
    known, pool, fresh = by_hand(fits, samples, names, rows)
    shares, shift = stack(known, pool)
    assert shares[2] == 0, "the case of a kind that is left out"
    assert (shares[:2] > 0).all()
    np.testing.assert_allclose(crossed.shares, shares, atol=1e-4)
    z = known @ shares + shift
    off = (z - np.median(z)).sum() / (len(z) + 10)  # of the only class
    np.testing.assert_allclose(crossed.known, z - off, atol=1e-3)
    np.testing.assert_allclose(crossed.pool, pool @ shares + shift - off, atol=1e-3)
    np.testing.assert_allclose(crossed.score(rows), fresh @ shares + shift - off, atol=1e-3)
    assert crossed.log_loss == pytest.approx(log_loss(known @ shares + shift, pool @ shares + shift), abs=1e-4)
    assert crossed.score(own).mean() > crossed.score(foreign).mean() + 1


def test_a_seed_gives_the_same_scores_again(toy):
    samples, own, _ = toy(n=30, m=60)
    one, same, other = (cross(samples, ("linear", "kernel"), np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.known, same.known)
    np.testing.assert_array_equal(one.pool, same.pool)
    np.testing.assert_array_equal(one.score(own), same.score(own))
    assert not np.array_equal(one.pool, other.pool)


@pytest.mark.parametrize("sizes", [(5, 5, 5), (7, 23, 1), (50,), (1, 1, 1, 1, 6)])
def test_every_class_is_spread_over_the_folds(sizes):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    folds = balanced_folds(labels, np.random.default_rng(3))
    for wanted in (labels >= 0, *(labels == c for c in range(len(sizes)))):  # all together, and each class
        counts = np.bincount(folds[wanted], minlength=FOLDS)
        assert len(counts) == FOLDS
        assert counts.max() - counts.min() <= 1


def test_folds_are_drawn():
    labels = np.repeat([0, 1], 20)
    one, other = (balanced_folds(labels, np.random.default_rng(seed)) for seed in (0, 1))
    assert not np.array_equal(one, other)
    assert not np.array_equal(one, np.arange(40) % FOLDS), "not the order of the rows, which may mean something"
