"""Out of fold, really: kinds that remember what they were fitted to, and all sums done a second time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from wrssl.errors import OptionError
from wrssl.priors import PRIORS, Comparison, Samples, register_prior
from wrssl.priors.crossfit import cross_fit
from wrssl.priors.samples import FOLDS, Units, draw_folds
from wrssl.priors.stack import log_loss, stack


def drawn(known, labels, pool, seed=0):
    return Samples(known, labels, pool, *draw_folds(labels, len(pool), np.random.default_rng(seed)))


class Remembering:
    """A kind that scores 1 what it was fitted to and 0 everything else, and keeps a list of its fits."""

    def __init__(self):
        self.fits: list[tuple[np.ndarray, np.ndarray, np.ndarray, object, list[float]]] = []

    def __call__(self, labeled, labels, pool, context):
        fitted, asked = {*labeled[:, 0].tolist(), *pool[:, 0].tolist()}, []
        self.fits.append((labeled, labels, pool, context, asked))

        def score(rows):
            asked.extend(rows[:, 0].tolist())
            return np.array([float(x in fitted) for x in rows[:, 0].tolist()])

        return score


@pytest.fixture
def kinds():
    """Register kinds for the test only."""
    with PRIORS.isolated():
        yield lambda **given: [register_prior(name)(kind) for name, kind in given.items()]


def numbered(n, m):
    """Rows that are numbers: even ones in the reference, whose class is half of it modulo 3, odd ones in the pool."""
    known, pool = (np.arange(start, start + 2 * size, 2, dtype=np.float32)[:, None] for start, size in ((0, n), (1, m)))
    return drawn(known, np.arange(n) % 3, pool)


@pytest.mark.parametrize(("n", "m"), [(10, 10), (23, 51)])
def test_no_row_is_scored_by_a_model_that_was_fitted_to_it(kinds, n, m):
    memory = Remembering()
    kinds(memory=memory)
    samples = numbered(n, m)
    _, found = cross_fit(samples, ("memory",))
    units = Units.of(samples.known, samples.pool)
    known, pool = units(samples.known)[:, 0].tolist(), units(samples.pool)[:, 0].tolist()
    every_row = {*known, *pool}
    assert len(every_row) == n + m, "units keep rows apart"
    assert len(memory.fits) == FOLDS
    for labeled, labels, members, context, asked in memory.fits:
        fitted = {*labeled[:, 0].tolist(), *members[:, 0].tolist()}
        assert not fitted & set(asked)
        assert fitted | set(asked) == every_row
        assert len(fitted) + len(asked) == n + m
        assert len(asked) == pytest.approx((n + m) / FOLDS, abs=2)
        assert labels.tolist() == [known.index(x) % 3 for x in labeled[:, 0].tolist()], "labels go with their rows"
        assert context.references[:, 0].tolist() == known, "those of the held-out fold as well"
        assert context.seed == samples.seed
    asked = [row for *_, rows in memory.fits for row in rows]
    assert sorted(asked) == sorted(every_row), "every row is scored once"
    # No row was remembered, so nothing tells them apart.
    assert len(np.unique(np.r_[found.known, found.pool])) == 1
    assert found.log_loss == pytest.approx(np.log(2))


def test_kinds_see_the_same_folds_and_seed(kinds):
    first, second = Remembering(), Remembering()
    kinds(one=first, two=second)
    cross_fit(numbered(20, 30), ("one", "two"))
    for (labeled, _, pool, context, _), (others, _, members, again, _) in zip(first.fits, second.fits, strict=True):
        np.testing.assert_array_equal(labeled, others)
        np.testing.assert_array_equal(pool, members)
        assert context.seed == again.seed


def by_hand(fits, samples, names, rows):
    """Out-of-fold scores, and those of new rows, from the models that a fit of every kind and fold left behind."""
    units = Units.of(samples.known, samples.pool)
    known_rows, pool_rows = units(samples.known), units(samples.pool)
    known, pool = np.full((len(known_rows), len(names)), np.nan), np.full((len(pool_rows), len(names)), np.nan)
    fresh = np.zeros((len(rows), len(names)))
    for number, name in enumerate(names):
        for labeled, members, model in fits[name]:
            left_out = [
                np.array([i for i, row in enumerate(whole) if not (row == rest).all(1).any()])
                for whole, rest in ((known_rows, labeled), (pool_rows, members))
            ]
            there = model(pool_rows[left_out[1]]).astype(np.float64)
            known[left_out[0], number] = (model(known_rows[left_out[0]]) - there.mean()) / there.std()
            pool[left_out[1], number] = (there - there.mean()) / there.std()
            fresh[:, number] += (model(units(rows)) - there.mean()) / there.std() / FOLDS
    return known, pool, fresh


def test_scores_are_those_of_the_fold_models_by_hand(toy, kinds):
    parts, own, foreign = toy(n=150, m=90)
    names, fits = ("line", "near", "reversed"), {}

    def recorded(name, kind):
        def fit(labeled, labels, pool):
            model = kind(labeled, labels, pool)
            fits.setdefault(name, []).append((labeled, pool, model))
            return model

        return fit

    def reverse(labeled, labels, pool):
        model = PRIORS.get("linear")(labeled, labels, pool)
        return lambda rows: -model(rows)

    found = zip(names, (PRIORS.get("linear"), PRIORS.get("neighbours"), reverse), strict=True)
    kinds(**{name: recorded(name, kind) for name, kind in found})
    samples = drawn(parts.known, np.zeros_like(parts.labels), parts.pool, 2)  # one class: offsets have their own test
    models, found = cross_fit(samples, names)
    rows = np.concatenate([own, foreign])
    known, pool, fresh = by_hand(fits, samples, names, rows)
    shares, shift = stack(known, pool)
    assert shares[2] == 0, "the case of a kind that is left out"
    assert (shares[:2] > 0).all()
    np.testing.assert_allclose(models.shares, shares, atol=1e-4)
    z = known @ shares + shift
    off = (z - np.median(z)).sum() / (len(z) + 10)  # of the only class
    np.testing.assert_allclose(found.known, z - off, atol=1e-3)
    np.testing.assert_allclose(found.pool, pool @ shares + shift - off, atol=1e-3)
    np.testing.assert_allclose(models(rows), fresh @ shares + shift - off, atol=1e-3)
    assert found.log_loss == pytest.approx(log_loss(known @ shares + shift, pool @ shares + shift), abs=1e-4)
    assert models(own).mean() > models(foreign).mean() + 1


def test_the_samples_decide_and_nothing_else_is_drawn(toy):
    parts, own, _ = toy(n=30, m=60)
    one, same, other = (cross_fit(drawn(*parts, seed), ("linear", "kernel")) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one[1].known, same[1].known)
    np.testing.assert_array_equal(one[1].pool, same[1].pool)
    np.testing.assert_array_equal(one[0](own), same[0](own))
    assert not np.array_equal(one[1].pool, other[1].pool)


@pytest.mark.parametrize("wrong", [lambda z: z[:-1], lambda z: z[:, None], lambda z: z * np.nan, lambda z: z + np.inf])
def test_scores_that_are_not_one_number_per_row_are_a_sentence(toy, kinds, wrong):
    parts, _, _ = toy(n=30, m=60)
    kinds(mine=lambda labeled, labels, pool: lambda rows: wrong(rows[:, 0]))
    with pytest.raises(OptionError, match=r"^The kind of prior 'mine' must score 12 rows by an array of shape \(12,\)"):
        cross_fit(drawn(*parts), ("mine",))


def test_scores_may_be_single_precision_or_lists(toy, kinds):
    parts, own, _ = toy(n=30, m=60)
    kinds(
        double=lambda labeled, labels, pool: lambda rows: rows[:, 0].astype(np.float64),
        single=lambda labeled, labels, pool: lambda rows: rows[:, 0],
        listed=lambda labeled, labels, pool: lambda rows: rows[:, 0].tolist(),
    )
    double, single, listed = (cross_fit(drawn(*parts), (name,))[0](own) for name in ("double", "single", "listed"))
    np.testing.assert_array_equal(single, double)
    np.testing.assert_array_equal(listed, double)


def test_a_comparison_fits_only_where_its_models_are_missing(toy, monkeypatch):
    parts, own, _ = toy(n=30, m=60)
    samples, calls = drawn(*parts), []

    def spy(samples, kinds):
        calls.append(kinds)
        return cross_fit(samples, kinds)

    monkeypatch.setattr("wrssl.priors.crossfit.cross_fit", spy)
    models, _ = cross_fit(samples, ("linear",))
    comparison = Comparison(samples, ("linear",), models)
    assert comparison.models is models
    assert calls == []
    back = pickle.loads(pickle.dumps(comparison))
    np.testing.assert_array_equal(back.models(own), models(own))
    assert back.models is back.models
    assert calls == [("linear",)]


def test_kinds_that_cannot_be_pickled_do_not_keep_a_comparison_from_it(toy, kinds):
    parts, own, _ = toy(n=30, m=60)
    kinds(mine=lambda labeled, labels, pool: lambda rows: rows[:, 1].astype(np.float64))
    samples = drawn(*parts)
    comparison = Comparison(samples, ["mine"], cross_fit(samples, ["mine"])[0])
    back = pickle.loads(pickle.dumps(comparison))
    np.testing.assert_array_equal(back.models(own), comparison.models(own))
