"""The prior of a whole pool: what it finds, what it leaves alone, and where its rows come from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

import wrssl.priors.fit as module
from wrssl.errors import DataError
from wrssl.priors import DEFAULT, PRIORS, WeightCurve, conformal_p, fit_prior, register_prior, smooth_p, weight_curve
from wrssl.priors.crossfit import Models, SampleScores, cross_fit
from wrssl.priors.samples import Units

ALL = slice(None)
LINEAR = ("linear",)


class Lazy:
    """Rows that are computed only when they are asked for, in parts of any size."""

    def __init__(self, rows: Tensor) -> None:
        self.rows, self.asked = rows, list[slice | Tensor]()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | Tensor, /) -> Tensor:
        self.asked.append(rows)
        return self.rows[rows] * 1.0


@pytest.fixture
def tensor(normal):
    return lambda *shape, seed: torch.from_numpy(normal(*shape, seed))


def classes(n):
    return np.arange(n) % 3


def equal(one, other):
    return (
        np.array_equal(one.scores, other.scores)
        and np.array_equal(one.known, other.known)
        and np.array_equal(one.weight(ALL), other.weight(ALL))
        and one.shares == other.shares
        and one.log_loss == other.log_loss
    )


@pytest.mark.parametrize(("n", "m", "kinds"), [(25, 60, tuple(PRIORS.names())), (25, 60, DEFAULT), (20, 20, DEFAULT)])
def test_a_handful_of_references_is_enough_to_run(tensor, n, m, kinds):
    prior = fit_prior(tensor(n, 4, seed=1), classes(n), tensor(m, 4, seed=2), 0, kinds)
    assert prior.scores.shape == (m,)
    assert prior.scores.dtype == np.float32
    assert prior.known.shape == (n,)
    assert np.isfinite(prior.scores).all()
    assert np.isfinite(prior.known).all()
    assert tuple(prior.shares) == kinds
    weight, p, ood = prior.weight(ALL), prior.p(ALL), prior.ood_score(ALL)
    for values, low in ((weight, 0), (p, 1 / (n + 1)), (ood, 0)):
        assert values.shape == (m,)
        assert values.min() >= low
        assert values.max() <= 1


@pytest.mark.parametrize(("n", "m"), [(19, 50), (0, 50), (50, 19), (50, 0)])
def test_too_few_rows_conclude_nothing(tensor, n, m):
    prior = fit_prior(tensor(n, 4, seed=1), classes(n), tensor(m, 4, seed=2) + 9, 0)
    assert prior.weight(ALL).tolist() == [1] * m
    assert prior.p(ALL).tolist() == [1] * m
    assert prior.ood_score(ALL).tolist() == [0.5] * m
    assert set(prior.shares.values()) == {0}
    assert prior.log_loss == pytest.approx(np.log(2))
    assert prior.comparison is None


def test_too_few_rows_are_not_even_read(tensor):
    pool = Lazy(tensor(50, 4, seed=1))
    fit_prior(tensor(19, 4, seed=2), classes(19), pool, 0)
    assert pool.asked == []


def test_numbers_come_from_scores_and_curve(tensor):
    n, m = 40, 90
    prior = fit_prior(tensor(n, 3, seed=1), classes(n), tensor(m, 3, seed=2), 0, LINEAR)
    scores = prior.scores.astype(np.float64)
    for rows in (ALL, slice(5, 9), np.array([7, 3, 3, 80])):
        np.testing.assert_array_equal(prior.weight(rows), prior.curve(scores[rows]))
        np.testing.assert_array_equal(prior.p(rows), conformal_p(scores[rows], prior.known))
        np.testing.assert_array_equal(prior.ood_score(rows), 1 - smooth_p(scores[rows], prior.known))
        for all_at_once, one in zip(prior.belonging(rows), (prior.p, prior.ood_score, prior.weight), strict=True):
            np.testing.assert_array_equal(all_at_once, one(rows))


def test_an_undecided_prior_weighs_1_and_judges_as_before(tensor):
    prior = fit_prior(tensor(40, 3, seed=1), classes(40), tensor(90, 3, seed=2) + 1, 0, LINEAR)
    undecided = prior.undecided()
    assert prior.weight(ALL).min() < 1
    assert undecided.weight(ALL).tolist() == [1] * 90
    np.testing.assert_array_equal(undecided.p(ALL), prior.p(ALL))
    np.testing.assert_array_equal(undecided.ood_score(ALL), prior.ood_score(ALL))
    assert undecided.comparison is prior.comparison


def test_a_kind_from_outside_takes_part(tensor):
    """The best kind here: own rows have two equal columns, which a line does not see."""
    pool, foreign = tensor(300, 2, seed=2), np.arange(300) % 2 == 1
    known = tensor(200, 2, seed=1)
    known[:, 1] = known[:, 0]
    pool[~foreign, 1] = pool[~foreign, 0]
    with PRIORS.isolated():

        @register_prior("outside")
        def outside(labeled, labels, pool):
            return lambda rows: -np.abs(rows[:, 0] - rows[:, 1])

        prior = fit_prior(known, classes(200), pool, 0, ("linear", "outside"))
        assert roc_auc_score(foreign, prior.ood_score(ALL)) > 0.8
        assert prior.shares["outside"] > prior.shares["linear"]
    assert "outside" not in PRIORS.names()


def test_a_seed_gives_the_same_prior_again(tensor):
    known, pool = tensor(40, 4, seed=1), tensor(80, 4, seed=2)
    one, same, other = (fit_prior(known, classes(40), pool, seed, ("linear", "kernel")) for seed in (5, 5, 6))
    assert equal(one, same)
    assert not np.array_equal(one.scores, other.scores)


def test_it_does_not_matter_how_rows_are_stored(tensor, monkeypatch):
    """A tensor, one that is not contiguous, and rows that are computed; with a part of the pool outside the sample."""
    monkeypatch.setattr("wrssl.priors.samples.POOL_ROWS", 60)
    monkeypatch.setattr(module, "CHUNK", 50)
    known, pool = tensor(40, 4, seed=1), tensor(170, 4, seed=2)
    expected = fit_prior(known, classes(40), pool, 0, LINEAR)
    assert equal(fit_prior(Lazy(known), classes(40), Lazy(pool), 0, LINEAR), expected)
    assert equal(fit_prior(known, classes(40), pool.T.contiguous().T, 0, LINEAR), expected)


def test_rows_stay_as_they_are(tensor):
    known, pool = tensor(30, 3, seed=1), tensor(60, 3, seed=2)
    before = known.clone(), pool.clone()
    fit_prior(known, classes(30), pool, 0, LINEAR)
    assert torch.equal(known, before[0])
    assert torch.equal(pool, before[1])


@pytest.mark.parametrize("chunk", [37, 10_000])
def test_a_large_pool_is_compared_by_a_sample_and_scored_as_a_whole(tensor, monkeypatch, chunk):
    """Sampled members keep the scores of models without them; all others get the mean of all models."""
    handed = []

    def spy(samples, kinds):
        handed.append((samples, *cross_fit(samples, kinds)))
        return handed[0][1:]

    monkeypatch.setattr(module, "cross_fit", spy)
    monkeypatch.setattr("wrssl.priors.samples.POOL_ROWS", 50)
    monkeypatch.setattr(module, "CHUNK", chunk)
    pool = Lazy(tensor(300, 4, seed=2))
    known = tensor(40, 4, seed=1) + 1
    prior = fit_prior(known, classes(40), pool, 0, LINEAR)
    [(samples, models, found)] = handed
    part = pool.asked[0].numpy()
    assert part.shape == (50,)
    assert len(np.unique(part)) == 50
    assert part.max() >= 250, "a sample of the whole pool, not its beginning"
    outside = np.setdiff1d(np.arange(300), part)
    rows = pool.rows.numpy()
    np.testing.assert_array_equal(samples.pool, rows[part])
    np.testing.assert_array_equal(models.units.deviation, Units.of(known.numpy(), rows[part]).deviation)
    np.testing.assert_array_equal(prior.scores[part], found.pool.astype(np.float32))
    np.testing.assert_allclose(prior.scores[outside], models(rows[outside]), rtol=1e-4, atol=1e-5)
    assert np.abs(models(rows[part]) - prior.scores[part]).max() > 1e-3, "in fold it would differ"
    assert prior.comparison.samples is samples
    assert prior.comparison.models is models
    assert prior.comparison.kinds == LINEAR
    # The curve comes from scores out of fold only, and from what is left of them in single precision.
    known, sampled = (scores.astype(np.float32).astype(np.float64) for scores in (found.known, found.pool))
    np.testing.assert_array_equal(prior.known, found.nested.astype(np.float32).astype(np.float64))
    np.testing.assert_array_equal(prior.curve.nodes, weight_curve(known, sampled).nodes)
    np.testing.assert_array_equal(prior.curve.values, weight_curve(known, sampled).values)


@pytest.mark.parametrize("size", [100, 101, 151])
def test_pools_just_above_the_size_of_the_sample(tensor, monkeypatch, size):
    """There, whole parts of the pool have been scored already."""
    monkeypatch.setattr("wrssl.priors.samples.POOL_ROWS", 100)
    monkeypatch.setattr(module, "CHUNK", 50)
    prior = fit_prior(tensor(30, 4, seed=1), classes(30), tensor(size, 4, seed=2), 0, LINEAR)
    assert np.isfinite(prior.scores).all()


def test_many_references_are_compared_by_a_sample_whose_labels_go_along(monkeypatch):
    monkeypatch.setattr("wrssl.priors.samples.KNOWN_ROWS", 20)
    numbers = torch.arange(100.0)[:, None]
    prior = fit_prior(numbers, np.arange(100), numbers.clone(), 0, LINEAR)
    assert prior.known.shape == (20,)
    samples = prior.comparison.samples
    np.testing.assert_array_equal(samples.known, samples.labels[:, None].astype(np.float32))
    assert len(np.unique(samples.labels)) == 20


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("where", ["known", "pool", "outside the sample"])
def test_rows_that_are_not_finite_are_refused(tensor, monkeypatch, value, where):
    known, pool = tensor(30, 3, seed=1), tensor(200, 3, seed=2)
    if where == "outside the sample":
        monkeypatch.setattr("wrssl.priors.samples.POOL_ROWS", 50)
        first = Lazy(pool)
        fit_prior(known, classes(30), first, 0, LINEAR)
        pool[np.setdiff1d(np.arange(200), first.asked[0].numpy())[0], 1] = value
    else:
        (known if where == "known" else pool)[17, 2] = value
    with pytest.raises(DataError, match="NaN or infinite"):
        fit_prior(known, classes(30), pool, 0, LINEAR)


@pytest.mark.parametrize("seed", range(3))
def test_fifty_references_see_a_shifted_half(tensor, seed):
    pool, foreign = tensor(800, 8, seed=10 + seed), np.arange(800) % 2 == 1
    pool[foreign] += 1.5
    prior = fit_prior(tensor(50, 8, seed=seed), classes(50), pool, seed)
    weight, ood = prior.weight(ALL), prior.ood_score(ALL)
    assert roc_auc_score(foreign, ood) > 0.95
    assert roc_auc_score(foreign, -weight) > 0.9
    assert weight[~foreign].mean() > weight[foreign].mean() + 0.5
    assert prior.log_loss < 0.6


def test_means_of_pairs_are_seen_though_no_line_sees_them(tensor):
    """The mean of two rows has the mean of a row and half its variance."""
    pool, foreign = tensor(800, 20, seed=1), np.arange(800) % 2 == 1
    pool[foreign] = (tensor(400, 20, seed=2) + tensor(400, 20, seed=3)) / 2
    known = tensor(1000, 20, seed=4)
    line = fit_prior(known, classes(1000), pool, 0, LINEAR)
    assert 0.4 < roc_auc_score(foreign, line.ood_score(ALL)) < 0.6
    prior = fit_prior(known, classes(1000), pool, 0)
    assert roc_auc_score(foreign, prior.ood_score(ALL)) > 0.8
    assert prior.shares["linear"] < 0.05
    assert prior.shares["quadratic"] + prior.shares["kernel"] + prior.shares["kernel-narrow"] > 0.3


@pytest.mark.parametrize("seed", range(3))
def test_a_clean_pool_keeps_its_weight(tensor, seed):
    prior = fit_prior(tensor(600, 8, seed=seed), classes(600), tensor(900, 8, seed=20 + seed), seed)
    assert prior.weight(ALL).mean() > 0.8
    assert prior.log_loss == pytest.approx(np.log(2), abs=0.03)
    # 5 % of the members, up to what 600 references know about that quantile: ±4 √(0.05 · 0.95/600).
    assert (prior.p(ALL) <= 0.05).mean() < 0.09


@pytest.mark.parametrize("z", [0.1, 0.0, -1.0, -0.1])
def test_a_pool_that_scores_like_the_reference_belongs(tensor, monkeypatch, z):
    """A stack that finds no kind worth anything gives every row the same log-odds, its shift."""

    def indifferent(samples, kinds):
        known, pool = (np.full(len(rows), z) for rows in (samples.known, samples.pool))
        units = Units.of(samples.known, samples.pool)
        models = Models(units, [], np.zeros((0, 1, 2)), np.zeros(len(kinds)), z, [], np.zeros(3))
        return models, SampleScores(known, pool, known, float(np.log(2)))

    monkeypatch.setattr(module, "cross_fit", indifferent)
    prior = fit_prior(tensor(30, 3, seed=1), classes(30), tensor(60, 3, seed=2), 0, LINEAR)
    assert prior.p(ALL).tolist() == [1] * 60
    assert prior.weight(ALL) == pytest.approx(1)
    assert prior.ood_score(ALL).max() < 0.05


def test_columns_may_be_constant_or_wild(tensor):
    known, pool = tensor(40, 3, seed=1), tensor(80, 3, seed=2)
    known[:, 1] = pool[:, 1] = 7
    pool[3, 2] = 1e6
    prior = fit_prior(known, classes(40), pool, 0)
    assert np.isfinite(prior.scores).all()
    assert 0 <= prior.weight(ALL).min() <= prior.weight(ALL).max() <= 1


def test_a_pool_that_is_one_row_again_and_again(tensor):
    prior = fit_prior(tensor(40, 3, seed=1), classes(40), torch.full((30, 3), 9.0), 0)
    assert np.isfinite(prior.scores).all()
    assert np.isfinite(prior.known).all()
    assert prior.weight(ALL).max() < 0.01, "it is nowhere near the reference"


def test_the_curve_from_too_few_rows_is_1_everywhere():
    curve = module.no_conclusion(3, LINEAR).curve
    assert isinstance(curve, WeightCurve)
    assert curve(np.array([-1e9, 0.0, 1e9])).tolist() == [1, 1, 1]
