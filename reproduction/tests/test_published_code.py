"""What only the published code does: its series, its Pseudo-Label, and clusters of a given purity."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

import wrssl
from wrssl.api import Context, Pass
from wrssl.errors import DataError
from wrssl.evaluate import is_ood
from wrssl.hypergrad import logit_loss, neumann
from wrssl.models import split
from wrssl.registry import METHODS, SOLVERS, WEIGHTINGS
from wrssl.training import PolicyNet
from wrssl_reproduction import published_code
from wrssl_reproduction.cell import Cell
from wrssl_reproduction.published_code import nearly_known_sides
from wrssl_reproduction.run import run_cell

TAU = 0.7  # of Pseudo-Label


def test_registered_once_more_they_are_the_same():
    published_code.register()
    assert SOLVERS.get("neumann-published") is published_code.neumann_published
    assert METHODS.get("pl-oliver") is published_code.OliverPseudoLabel
    assert METHODS.get("pl-published") is published_code.PublishedPseudoLabel


@pytest.fixture
def curvature(generator):
    """A symmetric matrix with eigenvalues from 0.1 to 1, and a right-hand side."""
    q, _ = torch.linalg.qr(torch.randn(12, 12, generator=generator, dtype=torch.float64))
    return q @ torch.diag(torch.linspace(0.1, 1, 12, dtype=torch.float64)) @ q.T, q.sum(1)


def test_the_series_is_the_written_one_and_points_the_other_way(curvature):
    matrix, b = curvature
    published = partial(published_code.neumann_published, lambda x: matrix @ x, b)
    factor = torch.eye(12, dtype=torch.float64) - 0.7 * matrix
    series = b - sum(torch.linalg.matrix_power(factor, p) @ b for p in range(1, 6))
    torch.testing.assert_close(published(terms=5, alpha=0.7), series, rtol=1e-12, atol=1e-12)
    right = neumann(lambda x: matrix @ x, b, terms=5, alpha=0.7)
    torch.testing.assert_close(published(terms=5, alpha=0.7) + right / 0.7, 2 * b)
    torch.testing.assert_close(published(terms=1, alpha=0.7), 0.7 * matrix @ b)
    small = published(terms=5, alpha=3e-3)  # the learning rate, as in that code
    right = neumann(lambda x: matrix @ x, b, terms=5, alpha=3e-3)
    assert torch.cosine_similarity(small, right, dim=0) < -0.999
    assert torch.cosine_similarity(small, torch.linalg.solve(matrix, b), dim=0) < 0
    torch.testing.assert_close(published(terms=5), published(terms=5, alpha=1.0), rtol=0.05, atol=0.05)  # 1/λmax


def by_hand(z, compat):
    """(r, dr/dz) in NumPy, each rule as its own source has it."""
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    sure = p.max(1) >= TAU
    onehot = np.eye(z.shape[1])[p.argmax(1)]
    if compat == "oliver":  # logits of the teacher: ten times one-hot where sure, else the student's own
        teacher = np.exp(np.where(sure[:, None], 10 * onehot, z))
        teacher /= teacher.sum(1, keepdims=True)
        return (teacher * np.log(teacher / p)).sum(1), p - teacher
    target = np.where(sure[:, None], 10 * onehot, p)  # ten times one-hot taken for probabilities
    return -(target * np.log(p)).sum(1), target.sum(1, keepdims=True) * p - target


@pytest.mark.parametrize("compat", ["oliver", "wrssl"])
def test_loss_and_gradient_of_pseudo_label(compat, generator):
    method = METHODS.create(published_code.PSEUDO_LABELS[compat], {"threshold": TAU})
    z = (2 * torch.randn(40, 4, generator=generator, dtype=torch.float64)).requires_grad_()
    share = float((z.softmax(1).amax(1) >= TAU).double().mean())
    assert 0.2 < share < 0.8, "both sides of the threshold are needed"
    targets = method.targets(z)
    assert not targets.requires_grad
    r = method.loss(z, targets)
    (gradient,) = torch.autograd.grad(r.sum(), z)
    want, slope = by_hand(z.detach().numpy(), compat)
    np.testing.assert_allclose(r.detach().numpy(), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient.numpy(), slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("compat", ["oliver", "wrssl"])
def test_one_clean_pass_gives_prediction_and_target(compat, generator):
    """The closed form in logit space, ``curvature``, has the gradient of the loss as well."""
    method = METHODS.create(published_code.PSEUDO_LABELS[compat], {"threshold": TAU})
    with torch.random.fork_rng(devices=[]):
        module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 4)).double()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(2 * torch.randn(p.shape, generator=generator, dtype=torch.float64))
    x = 2 * torch.randn(30, 3, generator=generator, dtype=torch.float64)
    net, context = PolicyNet(split(module, x), "batch"), Context(0, 1, generator, generator, noise=0.5)
    views = method.views(net, x, context)
    assert views.inputs is x
    assert views.kind is Pass.UNLABELED
    assert dict(net.images) == {Pass.UNLABELED: 30}
    logits = net.head(views.features)
    assert 0.2 < float((logits.softmax(1).amax(1) >= TAU).double().mean()) < 0.9
    want, slope = by_hand(logits.detach().numpy(), compat)
    r = method.loss(logits, views.targets)
    np.testing.assert_allclose(r.detach().numpy(), want, rtol=1e-12, atol=1e-12)
    closed = logit_loss(method.curvature).gradient(logits.detach(), views.targets)
    np.testing.assert_allclose(closed.numpy(), slope, rtol=1e-12, atol=1e-12)
    gradients = torch.autograd.grad(r.sum(), list(module.parameters()), retain_graph=True)
    chained = torch.autograd.grad(logits, list(module.parameters()), torch.from_numpy(slope))
    for got, expected in zip(gradients, chained, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("compat", ["oliver", "wrssl"])
def test_the_threshold_itself_is_confident(compat):
    z = torch.zeros(1, 2, dtype=torch.float64)  # p = (½, ½) without rounding
    name, soft = published_code.PSEUDO_LABELS[compat], 1 / (1 + math.exp(-10))
    reached, missed = (
        METHODS.create(name, {"threshold": threshold}).targets(z) for threshold in (0.5, math.nextafter(0.5, 1.0))
    )
    assert reached[0].tolist() == pytest.approx({"oliver": [soft, 1 - soft], "wrssl": [10.0, 0.0]}[compat], abs=1e-15)
    assert missed[0].tolist() == {"oliver": [0.0, 0.0], "wrssl": [0.5, 0.5]}[compat]


def test_below_the_threshold_the_soft_target_is_exactly_nothing(generator):
    method = METHODS.create("pl-oliver", {"threshold": 0.999999})
    z = torch.randn(40, 4, generator=generator).requires_grad_()
    r = method.loss(z, method.targets(z))
    (gradient,) = torch.autograd.grad(r.sum(), z)
    assert (r == 0).all()
    assert (gradient == 0).all()


def test_the_published_code_multiplies_the_confident_loss_by_ten(generator):
    z = torch.randn(40, 4, generator=generator)
    hard, ten = (METHODS.create(name, {"threshold": 0.0}) for name in ("pl", "pl-published"))
    torch.testing.assert_close(ten.loss(z, ten.targets(z)), 10 * hard.loss(z, hard.targets(z)))
    assert (ten.lr, ten.coef, ten.curvature) == (hard.lr, hard.coef, hard.curvature)


def test_a_cell_names_the_variant_by_its_compat(monkeypatch):
    asked = []

    def fit(scenario, **settings):
        asked.append(settings["method"])
        raise InterruptedError("what follows is as for any other cell")

    monkeypatch.setattr(wrssl, "fit", fit)
    cell = Cell("moons", "faraway", 0.5, "replace", "mlp", "pl", "none", "batch", 3, 40)
    for compat in (None, "oliver", "wrssl"):
        with pytest.raises(InterruptedError):
            run_cell(replace(cell, compat=compat))
    assert asked == ["pl", "pl-oliver", "pl-published"]


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
