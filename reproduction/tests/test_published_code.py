"""Clusters of a given purity: as pure as asked for, divided within each side, and made from the seed alone."""

from __future__ import annotations

import pytest
import torch
from sklearn.cluster import KMeans

import wrssl
from wrssl.errors import DataError
from wrssl.evaluate import is_ood
from wrssl.registry import WEIGHTINGS
from wrssl_reproduction.cell import Cell
from wrssl_reproduction.published_code import nearly_known_sides
from wrssl_reproduction.run import run_cell


@pytest.fixture(scope="module")
def digits():
    return wrssl.load_scenario("digits", ood="mean", ratio=0.5, seed=0)


def members(rows, foreign, K):
    """How many in-distribution and foreign members each of K clusters has."""
    clusters = torch.from_numpy(KMeans(K, n_init=1, random_state=0).fit_predict(rows.numpy()))
    return torch.bincount(clusters.long() * 2 + foreign.long(), minlength=2 * K).view(K, 2)


@pytest.mark.parametrize("purity", [1.0, 0.9])
def test_k_means_finds_clusters_of_that_purity_on_both_sides(digits, purity):
    foreign, K = is_ood(digits), 8
    found = members(nearly_known_sides(digits, purity, 0), foreign, K)
    share = float(found.max(1).values.sum() / found.sum())
    three = 3 * (purity * (1 - purity) / len(foreign)) ** 0.5  # standard errors of a share
    assert share == pytest.approx(purity, abs=three + 1e-12)
    sides = (found[:, 1] > found[:, 0]).sum()
    assert 2 <= sides <= K - 2  # neither side is one cluster


def test_without_the_column_the_clusters_mix_both_sides(digits):
    rows, foreign = nearly_known_sides(digits, 1.0, 0), is_ood(digits)
    found = members(rows[:, :-1], foreign, 8)
    assert found.max(1).values.sum() < 0.95 * found.sum()
    assert rows[:, -1].abs().min() > 10 * rows[:, :-1].norm(dim=1).max()


def test_the_errors_depend_on_the_seed_alone(digits):
    first, again, other = (nearly_known_sides(digits, 0.9, seed)[:, -1].sign() for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_pool_without_truth_is_refused(digits):
    blind = wrssl.Scenario(digits.labeled, digits.unlabeled, digits.validation)
    with pytest.raises(DataError, match="need to know which members are foreign"):
        nearly_known_sides(blind, 0.9, 0)


def test_a_cell_hands_them_to_the_weighting(monkeypatch):
    handed = {}

    def fit(scenario, **settings):
        handed.update(settings["weight_options"], scenario=scenario)
        raise InterruptedError("what follows is as for any other cell")

    monkeypatch.setattr(wrssl, "fit", fit)
    cell = Cell("moons", "faraway", 0.5, "replace", "mlp", "vat", "wr-cluster", "weighted", 3, 40, K=4, purity=0.8)
    with pytest.raises(InterruptedError):
        run_cell(cell)
    assert handed["K"] == 4
    assert torch.equal(handed["embedding"], nearly_known_sides(handed["scenario"], 0.8, 3))


def test_plain_steps_of_the_weights_are_those_of_the_published_code(monkeypatch):
    handed = {}

    def fit(scenario, **settings):
        handed.update(settings["weight_options"])
        raise InterruptedError("what follows is as for any other cell")

    monkeypatch.setattr(wrssl, "fit", fit)
    settings = {"K": 4, "L": 1, "alpha": "lr", "plain_beta": 50.0}
    cell = Cell("moons", "faraway", 0.5, "replace", "mlp", "pl", "wr-cluster", "weighted", 3, 40, **settings)
    with pytest.raises(InterruptedError):
        run_cell(cell)
    assert handed == {"K": 4, "L": 1, "alpha": "lr", "beta": 50.0, "compat": "paper"}
    descent = WEIGHTINGS.create("wr-cluster", handed).descent
    assert (descent.beta, descent.plain) == (50.0, True)
