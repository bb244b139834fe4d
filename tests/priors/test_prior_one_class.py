"""The prior for rows of an embedding: its formulas, its references, and what it finds in a toy example."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.data import Directions, unit_rows
from wrssl.errors import DataError
from wrssl.priors import ONE_CLASS, OneClassScorer, Prior, conformal_p, fit_one_class, one_class, scorer_from_state
from wrssl.priors.one_class import Components, LabelScores, OneClass, folds_of, nearest_members, smoothed


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def rows(n, d, seed):
    return unit(np.random.default_rng(seed).normal(size=(n, d)))


def toy(seed, labels=5, classes=4, columns=48, own=150, foreign=150, spread=0.9):
    """Directions of labels, classes, pool, and which members are foreign: two clusters that no class has."""
    random = np.random.default_rng(seed)
    centers = 3 * unit(random.normal(size=(classes + 2, columns)))
    draw = lambda k: centers[k] + spread * random.normal(size=(len(k), columns)) / np.sqrt(columns) * 3  # noqa: E731
    y = np.repeat(np.arange(classes), labels)
    members = np.r_[random.integers(0, classes, own), random.integers(classes, classes + 2, foreign)]
    x, u = draw(y), draw(members)
    center = torch.from_numpy(u.mean(0)).float()
    known, pool = (unit_rows(torch.from_numpy(part).float(), center) for part in (x, u))
    return known, y, pool, members >= classes


def test_the_four_scores_are_those_of_numpy():
    labeled, pool, new, y = rows(12, 20, 0), rows(300, 20, 1), rows(7, 20, 2), np.arange(12) % 3
    components = Components.of(torch.from_numpy(pool).float())
    found = LabelScores.of(torch.from_numpy(labeled).float(), torch.from_numpy(y), components)(
        torch.from_numpy(new).float()
    ).numpy()
    neighbors = np.sort(new @ labeled.T, axis=1)[:, -3:].mean(1)
    means = unit(np.stack([labeled[y == c].mean(0) for c in range(3)]))
    classes = (new @ means.T).max(1)
    values, vectors = np.linalg.eigh(np.cov(pool.T, bias=True))
    white = lambda x: unit((x - pool.mean(0)) @ vectors / np.sqrt(values + values.mean()))  # noqa: E731
    whitened = np.sort(white(new) @ white(labeled).T, axis=1)[:, -3:].mean(1)
    indicators = np.eye(3)[y]
    # The same ridge regression in its other form: (LᵀL + I/10)⁻¹ LᵀY.
    z = new @ np.linalg.solve(labeled.T @ labeled + 0.1 * np.eye(20), labeled.T @ indicators)
    energy = np.log(np.exp(10 * z).sum(1))
    for kind, expected in enumerate((neighbors, classes, whitened, energy)):
        assert np.abs(found[:, kind] - expected).max() < 2e-5, ONE_CLASS[kind]


def test_neighbors_are_the_nearest_and_never_the_row_itself():
    sample, new = (torch.from_numpy(np.random.default_rng(k).normal(size=(n, 5))) for k, n in ((0, 60), (1, 9)))
    distance = lambda a, b: ((a[:, None] - b[None]) ** 2).sum(2)  # noqa: E731
    expected = np.argsort(distance(new.numpy(), sample.numpy()), axis=1)[:, :10]
    assert np.array_equal(np.sort(nearest_members(new, sample, itself=False)), np.sort(expected))
    among = distance(sample.numpy(), sample.numpy())
    np.fill_diagonal(among, np.inf)
    expected = np.argsort(among, axis=1)[:, :10]
    assert np.array_equal(np.sort(nearest_members(sample, sample, itself=True)), np.sort(expected))


def test_smoothing_solves_its_equation(monkeypatch):
    sample = torch.from_numpy(np.random.default_rng(0).normal(size=(80, 4)))
    neighbors, scores = nearest_members(sample, sample, itself=True), torch.linspace(-1, 1, 80).double()
    average = np.zeros((80, 80))
    for row, near in enumerate(neighbors.tolist()):
        average[row, near] = 1 / 10
    exact = np.linalg.solve(np.eye(80) - average / 2, scores.numpy() / 2)
    assert np.abs(smoothed(scores, neighbors).numpy() - exact).max() < 2**-10
    monkeypatch.setattr(one_class, "ROUNDS", 60)
    assert np.abs(smoothed(scores, neighbors).numpy() - exact).max() < 1e-12


def test_a_reference_is_scored_by_what_never_saw_its_fold():
    known, y, pool, _ = toy(0)
    prior = fit_one_class(known, y, pool, 3)
    random = np.random.default_rng(3)
    folds = folds_of(y, random)
    sample = pool
    components = Components.of(torch.cat([sample, known]))
    of_sample = components(sample)
    around = nearest_members(of_sample, of_sample, itself=True)
    for fold in range(5):
        held = folds == fold
        assert np.array_equal(np.bincount(y[held.numpy()], minlength=4), [1, 1, 1, 1])
        scores = LabelScores.of(known[~held], torch.from_numpy(y)[~held], components)
        expected = OneClass.of(scores, sample, of_sample, around)(known[held])
        assert np.allclose(prior.known[held.numpy()], expected, atol=1e-6)


def test_foreign_members_are_found_and_own_ones_kept():
    areas, dropped, found = [], [], []
    for seed in range(12):
        known, y, pool, foreign = toy(seed)
        p = fit_one_class(known, y, pool, seed).p(slice(None))
        areas.append(np.mean(p[foreign][:, None] < p[~foreign]) + np.mean(p[foreign][:, None] == p[~foreign]) / 2)
        dropped.append(np.mean(p[~foreign] <= 0.05))
        found.append(np.mean(p[foreign] <= 0.05))
    assert np.mean(areas) > 0.95
    assert np.mean(dropped) < 0.07
    assert np.mean(found) > 0.6


def test_the_rate_is_kept_where_nothing_is_foreign():
    """Labels and members from one distribution: at most two points more than promised are lost."""
    shares = []
    for seed in range(40):
        known, y, pool, _ = toy(100 + seed, labels=10, own=300, foreign=1)
        p = fit_one_class(known, y, pool, seed).p(slice(0, 300))
        shares.append([np.mean(p <= rate) for rate in (0.05, 0.1)])
    lost = np.mean(shares, axis=0)
    assert (lost < np.array([0.07, 0.12])).all()
    assert (lost > np.array([0.025, 0.05])).all(), "nor is it so careful that nothing is found"


def test_a_large_pool_is_scored_like_its_sample(monkeypatch):
    known, y, pool, foreign = toy(1, own=400, foreign=400)
    whole = fit_one_class(known, y, pool, 0)
    monkeypatch.setattr(one_class, "POOL_ROWS", 400)
    monkeypatch.setattr(one_class, "CHUNK", 37)
    part = fit_one_class(known, y, pool, 0)
    assert len(part.comparison.settled) == 400
    assert np.corrcoef(whole.scores, part.scores)[0, 1] > 0.98
    outside = np.setdiff1d(np.arange(800), one_class._some(np.random.default_rng(0), 800, 400).numpy())
    assert np.allclose(part.scores[outside], part.comparison(pool[outside]), atol=1e-5)
    score = part.ood_score(slice(None))
    assert np.mean(score[foreign][:, None] > score[~foreign]) > 0.9


def test_new_samples_are_scored_alike_and_after_storage_the_same():
    known, y, pool, _ = toy(2)
    prior = fit_one_class(known, y, pool, 0)
    scorer = OneClassScorer(prior.comparison, prior.known, prior.curve, Directions(torch.zeros(pool.shape[1])))
    again = scorer_from_state(scorer.state_dict())
    assert isinstance(again, OneClassScorer)
    for one, other in zip(scorer(pool[:50]), again(pool[:50]), strict=True):
        assert np.array_equal(one, other)
    seen, new = prior.belonging(slice(0, 300)), scorer(pool)
    assert np.corrcoef(np.argsort(np.argsort(seen.ood_score)), np.argsort(np.argsort(new.ood_score)))[0, 1] > 0.97
    assert np.array_equal(seen.p, conformal_p(prior.scores[:300].astype(np.float64), prior.known))


def test_the_prior_survives_a_state():
    known, y, pool, _ = toy(3)
    prior = fit_one_class(known, y, pool, 0)
    again = Prior.from_state(prior.state_dict(), ONE_CLASS, prior.comparison)
    assert np.array_equal(again.scores, prior.scores)
    assert np.array_equal(again.weight(slice(None)), prior.weight(slice(None)))
    assert set(again.shares.values()) == {0.25}


@pytest.mark.parametrize(
    ("labels", "members"), [([0] * 10 + [1] * 9, 50), ([0, 1] * 10, 19)], ids=["19 labels", "19 members"]
)
def test_too_few_rows_conclude_nothing(labels, members):
    prior = fit_one_class(torch.eye(len(labels), 30), np.array(labels), torch.eye(members, 30), 0)
    assert set(prior.weight(slice(None))) == {1.0}
    assert set(prior.ood_score(slice(None))) == {0.5}


@pytest.mark.parametrize("seed", range(3))
def test_odd_pools_have_finite_scores(seed):
    """Copies, a row without a direction, a class with one label, fewer columns than components."""
    known, y, pool, _ = toy(seed, columns=5)
    y = np.where(np.arange(len(y)) == 0, 9, y)
    pool = torch.cat([pool[:100], pool[:100], torch.zeros(3, 5), known[:5]])
    prior = fit_one_class(known, y, pool, seed)
    assert np.isfinite(prior.scores).all()
    assert np.isfinite(prior.known).all()
    same = fit_one_class(known, y, pool[:1].expand(50, -1), seed)
    assert len(set(same.scores.tolist())) == 1


def test_rows_that_are_not_finite_are_refused():
    known, y, pool, _ = toy(0)
    with pytest.raises(DataError, match="NaN or infinite values"):
        fit_one_class(known, y, torch.where(torch.arange(len(pool))[:, None] == 7, torch.nan, pool), 0)
