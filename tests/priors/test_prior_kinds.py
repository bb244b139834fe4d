"""Every kind against its formula, computed a second time: by scipy, by loops, in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score

from wrssl.errors import OptionError
from wrssl.priors import DEFAULT, PRIORS, Context, register_prior
from wrssl.priors.classes import RIDGE as ENERGY_RIDGE
from wrssl.priors.kinds import kind_named
from wrssl.priors.kinds import logistic as module
from wrssl.priors.kinds.logistic import COLUMNS, kernel, local_width, logistic, products

BUILT_IN = ("linear", "quadratic", "kernel", "kernel-narrow", "neighbours", "energy", "trees")


def two_samples(normal, parts, n=30, m=200):
    """A reference that is elsewhere in one column; sizes are unequal, so that what each sample counts is seen."""
    known, pool = normal(n, 3, 1).astype(np.float64), normal(m, 3, 2).astype(np.float64)
    known[:, 0] += 0.8
    scale, offset = np.array([1.0, 30.0, 0.05]), np.array([0.0, 100.0, -3.0])
    return parts(known * scale + offset, np.arange(n) % 2, pool * scale + offset)


@pytest.mark.parametrize("ridge", [2e-3, 0.08, 0.5])
@pytest.mark.parametrize("sizes", [(30, 200), (200, 30)])
def test_logistic_is_the_minimum_of_its_formula(normal, parts, ridge, sizes):
    samples = two_samples(normal, parts, *sizes)
    both = np.concatenate([samples.known, samples.pool])
    center, deviation = both.mean(0), both.std(0)
    known, pool = (samples.known - center) / deviation, (samples.pool - center) / deviation

    def formula(u):
        z_known, z_pool = known @ u[:3] + u[3], pool @ u[:3] + u[3]
        fit = 0.5 * np.log1p(np.exp(-z_known)).mean() + 0.5 * np.log1p(np.exp(z_pool)).mean()
        return fit + ridge / 2 * (u[:3] ** 2).sum()

    best = minimize(formula, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    rows = normal(50, 3, 3) * deviation + center
    expected = (rows - center) / deviation @ best[:3] + best[3]
    np.testing.assert_allclose(logistic(samples.known, samples.pool, lambda x: x, ridge)(rows), expected, atol=2e-3)


def test_logistic_fits_features_of_the_rows(normal, parts):
    known, _, pool = two_samples(normal, parts)
    rows = normal(20, 3, 3).astype(np.float64)
    got, expected = logistic(known, pool, lambda x: x**2, 0.1), logistic(known**2, pool**2, lambda x: x, 0.1)
    np.testing.assert_allclose(got(rows), expected(rows**2), atol=1e-9)


def test_logistic_ignores_a_feature_with_one_value(normal, parts):
    known, _, pool = two_samples(normal, parts)
    plain = logistic(known, pool, lambda x: x, 0.1)
    wider = logistic(known, pool, lambda x: np.c_[x, np.full(len(x), 7.0)], 0.1)
    rows = normal(20, 3, 3).astype(np.float64)
    np.testing.assert_allclose(wider(rows), plain(rows), atol=1e-6)


def test_products_by_loops(normal):
    rows = normal(4, 5, 0)
    expected = [[*x, *(x[i] * x[j] for i in range(5) for j in range(i, 5))] for x in rows]
    np.testing.assert_array_equal(products(rows), np.array(expected))


def test_products_are_those_of_the_first_columns(normal):
    rows = normal(3, COLUMNS + 15, 0)
    assert products(rows).shape == (3, COLUMNS + COLUMNS * (COLUMNS + 1) // 2)
    np.testing.assert_array_equal(products(rows), products(rows[:, :COLUMNS]))


@pytest.mark.parametrize("g", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("columns", [2, 9])
def test_random_features_have_the_gaussian_kernel_as_their_mean(normal, monkeypatch, g, columns):
    """φ(x)ᵀφ(x') is a mean of D independent terms with |2 cos cos'| ≤ 2, off by less than 5 · √2/√D."""
    monkeypatch.setattr(module, "FOURIER_FEATURES", 20_000)
    rows = normal(12, columns, 1)
    features = kernel(g)(rows, np.zeros(12, np.int64), rows + 1, Context(5, rows)).features
    phi = features(rows).astype(np.float64)
    distance = ((rows[:, None].astype(np.float64) - rows) ** 2).sum(2)
    np.testing.assert_allclose(2 * phi @ phi.T / 20_000, np.exp(-g / (2 * columns) * distance), atol=0.05)


@pytest.mark.parametrize(("n", "columns", "k"), [(16, 2, 2), (100, 50, 5), (400, 3, 10)])
def test_the_narrow_kernel_is_as_wide_as_neighbours_are_apart(normal, n, columns, k):
    rows = normal(n, columns, 1)
    distance = np.sort(((rows[:, None].astype(np.float64) - rows) ** 2).sum(2), axis=1)
    g = max(1, 2 * columns * 0.4 / np.median(np.sqrt(distance[:, k])) ** 2)  # column 0 is the row itself
    assert local_width(rows, 0) == 2.0 ** round(np.log2(g))
    assert (g > 1) == (columns < 50)


def test_it_is_narrow_where_rows_lie_on_curves_and_as_wide_as_all_distances_in_many_columns(normal):
    angle = np.linspace(0, np.pi, 200)
    assert local_width(np.c_[np.cos(angle), np.sin(angle)].astype(np.float32) * 2, 0) >= 16
    assert local_width(normal(200, 50, 0), 0) == 1
    assert local_width(normal(200, 50, 0) * 1e-3, 0) == 2.0**10, "the narrowest"
    assert local_width(np.ones((30, 4), np.float32), 0) == 2.0**10, "repetitions are at distance 0"
    assert local_width(np.ones((1, 4), np.float32), 0) == 2.0**10


def test_the_narrow_kernel_has_the_width_of_all_references(normal):
    references = normal(60, 3, 1)
    some = references[:40] * 9
    score = PRIORS.get("kernel-narrow")(some, np.zeros(40, np.int64), some + 1, Context(5, references))
    assert score.features.width == local_width(references, 5) != local_width(some, 5)


def test_the_kernel_classifies_by_these_features(normal, parts, fitted):
    samples, rows = two_samples(normal, parts), normal(10, 3, 3)
    got = fitted("kernel", samples)
    assert (got.features.width, got.features.columns, got.features.seed) == (0.3, 3, 0)
    expected = logistic(samples.known, samples.pool, got.features, module.KERNEL_RIDGE)
    np.testing.assert_array_equal(got(rows), expected(rows))


@pytest.mark.parametrize(("n", "m", "k_known", "k_pool"), [(40, 400, 1, 2), (900, 30, 3, 1), (1, 2, 1, 1)])
def test_neighbours_by_brute_force(normal, parts, fitted, n, m, k_known, k_pool):
    known, pool, rows = normal(n, 4, 1) + 1, normal(m, 4, 2), normal(25, 4, 3)

    def nearest(x, others, k):
        return sum(sorted(math.dist(x, other) for other in others)[:k]) / k

    expected = [math.log(nearest(x, pool, k_pool) / nearest(x, known, k_known)) for x in rows]
    got = fitted("neighbours", parts(known, np.zeros(n, np.int64), pool))(rows)
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_neighbours_of_a_row_that_is_in_both_samples(normal, parts, fitted):
    rows = normal(20, 3, 0)
    got = fitted("neighbours", parts(rows[:10], np.zeros(10, np.int64), rows))(rows)
    assert np.isfinite(got).all()
    assert got[:10] == pytest.approx(0)
    assert (got[10:] < -10).all(), "known to the pool only"


@pytest.mark.parametrize("classes", [2, 3])
def test_energy_of_an_independent_regression(normal, parts, fitted, classes):
    """For two classes sklearn fits the difference z of the two logits, which are ±z/2."""
    n, known, rows = 90, normal(90, 2, 1).astype(np.float64), 3 * normal(30, 2, 2).astype(np.float64)
    labels = np.arange(n) % classes
    known += np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[labels]

    def logits(u, x):
        if classes == 2:
            z = x @ u[:2] + u[2]
            return np.stack([-z / 2, z / 2], axis=1)
        intercept = u[6:] - u[6:].mean()  # the one thing that neither loss nor ridge decides
        return x @ u[:6].reshape(2, 3) + intercept

    def formula(u):
        z, slopes = logits(u, known), u[: 2 if classes == 2 else 6]
        return (logsumexp(z, axis=1) - z[np.arange(n), labels]).mean() + ENERGY_RIDGE / 2 * (slopes**2).sum()

    best = minimize(formula, np.zeros(3 if classes == 2 else 9), method="BFGS", options={"gtol": 1e-6}).x
    got = fitted("energy", parts(known, labels, np.zeros((5, 2))))(rows)
    np.testing.assert_allclose(got, logsumexp(logits(best, rows), axis=1), atol=0.01)


def test_energy_grows_with_confidence(toy, fitted):
    samples, _, _ = toy()
    x = np.linspace(0, 3, 20, dtype=np.float32)
    line = np.stack([x, np.ones_like(x), np.zeros_like(x)], axis=1)
    assert (np.diff(fitted("energy", samples)(line)) > 0).all()


def test_energy_of_one_class_tells_nothing(toy, fitted):
    samples, own, _ = toy()
    alone = samples._replace(labels=np.full(len(samples.known), 4))
    assert fitted("energy", alone)(own).tolist() == [0.0] * len(own)


def test_energy_does_not_use_the_pool(toy, fitted):
    samples, own, _ = toy()
    elsewhere = samples._replace(pool=samples.pool[:3] - 50)
    np.testing.assert_array_equal(fitted("energy", samples)(own), fitted("energy", elsewhere)(own))


def test_trees_are_never_certain(parts, fitted):
    """Log-odds stay finite where all trees agree: a hundred votes count as half a vote less."""
    ones = np.ones((20, 2), dtype=np.float32)
    score = fitted("trees", parts(ones, np.zeros(20, np.int64), np.repeat(-ones, 5, axis=0)))
    assert score(np.concatenate([ones[:1], -ones[:1]])) == pytest.approx([math.log(199), -math.log(199)])


def test_trees_count_both_samples_alike(parts, fitted):
    """Twenty references and a hundred members in one place: as likely the one as the other."""
    ones = np.ones((20, 2), dtype=np.float32)
    score = fitted("trees", parts(ones, np.zeros(20, np.int64), np.repeat(ones, 5, axis=0)))
    assert score(ones[:1]) == pytest.approx([0], abs=1e-9)


@pytest.mark.parametrize("name", BUILT_IN)
def test_own_rows_score_higher_than_foreign_ones(toy, fitted, name):
    samples, own, foreign = toy()
    score = fitted(name, samples)
    both = np.concatenate([own, foreign])
    got = score(both)
    assert got.shape == (200,)
    assert got.dtype == np.float64, "where rows are single precision: sums over kinds and folds are not"
    assert np.isfinite(got).all()
    assert roc_auc_score(np.arange(200) < 100, got) > 0.99
    np.testing.assert_allclose(
        score(own), got[:100], rtol=1e-5, atol=1e-5, err_msg="a row's score depends on no other row"
    )


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_seed_gives_the_same_scores_again(toy, fitted, name):
    samples, own, foreign = toy()
    rows = np.concatenate([own, foreign])
    first = fitted(name, samples, 3)(rows)
    np.testing.assert_array_equal(fitted(name, samples, 3)(rows), first)
    drawn = name in ("kernel", "kernel-narrow", "trees")
    assert np.array_equal(fitted(name, samples, 4)(rows), first) != drawn


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_samples_stay_as_they_are(toy, fitted, name):
    samples, own, _ = toy()
    before = [array.copy() for array in samples]
    fitted(name, samples)(own)
    for array, kept in zip(samples, before, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_the_registry_has_them_in_this_order_and_the_default_ones_are_among_them():
    assert tuple(PRIORS.names()) == BUILT_IN
    assert BUILT_IN[:4] == DEFAULT


@pytest.mark.parametrize("declared", ["three", "context", "context by keyword"])
def test_a_kind_gets_what_it_declares(normal, parts, fitted, declared):
    seen = []

    def three(labeled, labels, pool):
        return seen.extend([labeled, labels, pool])

    def four(labeled, labels, pool, context):
        return seen.extend([labeled, labels, pool, context])

    def keyword(labeled, labels, pool, *, context):
        return seen.extend([labeled, labels, pool, context])

    samples = parts(normal(4, 2, 1), np.arange(4) % 2, normal(5, 2, 2))
    with PRIORS.isolated():
        register_prior("spy")({"three": three, "context": four}.get(declared, keyword))
        fitted("spy", samples, 9)
    assert [array is part for array, part in zip(seen, samples, strict=False)] == [True] * 3
    assert [(c.seed, c.references is samples.known) for c in seen[3:]] == [(9, True)] * (declared != "three")


def test_an_unknown_kind_is_a_sentence():
    with pytest.raises(OptionError, match=r"^There is no kind of prior 'magic'; choose one of linear, .*trees, or"):
        kind_named("magic")
