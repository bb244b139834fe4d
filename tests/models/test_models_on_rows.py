"""Networks for rows of an embedding: the first layer, and that ``linear`` on the labels alone is the probe."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import wrssl
from wrssl.models import UnitRows, build_model, outline_model, training_habit


def test_the_first_layer_gives_scaled_directions():
    layer = UnitRows(4, scale=2.0).double()
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    layer.center.copy_(torch.tensor([1.0, -1.0, 0.5, 2.0]))
    moved = x.numpy() - layer.center.numpy()
    assert np.abs(layer(x).numpy() - 2 * moved / np.linalg.norm(moved, axis=1)[:, None]).max() < 1e-14


def test_weight_decay_is_that_of_logistic_regression():
    assert training_habit("linear", 40).weight_decay == 1 / 400
    assert training_habit("linear", 40).lr == 0.03
    assert training_habit("mlp", 40) == training_habit(torch.nn.Linear(2, 2), 40) == training_habit("", 1)


@pytest.fixture
def task():
    random = np.random.default_rng(0)
    means = random.normal(size=(3, 40))
    y = np.repeat(np.arange(3), 8)
    X = (means[y] + 1.5 * random.normal(size=(24, 40)) + 3).astype(np.float32)
    U = (means[random.integers(0, 3, 300)] + 1.5 * random.normal(size=(300, 40)) + 3).astype(np.float32)
    return X, y, U


def test_linear_on_the_labels_alone_is_the_probe(task):
    X, y, U = task
    scn = wrssl.Scenario((X, y), U, rows="embedding")
    result = wrssl.fit(scn, model="linear", method="supervised", weights="none", steps=1500, batch_size=24, seed=0)
    unit = lambda x: (x - U.mean(0)) / np.linalg.norm(x - U.mean(0), axis=1, keepdims=True)  # noqa: E731
    # The penalty of the run includes the bias, that of scikit-learn does not: a column of ones has one.
    known, pool = (np.c_[unit(x), np.ones(len(x))] for x in (X, U))
    probe = LogisticRegression(C=10, max_iter=5000, tol=1e-10, fit_intercept=False).fit(known, y)
    assert np.abs(result.predict_proba(U) - probe.predict_proba(pool)).max() < 2e-3


def test_the_center_is_part_of_the_model(task, tmp_path):
    X, y, U = task
    result = wrssl.fit(wrssl.Scenario((X, y), U, rows="embedding"), steps=20, seed=0, out=tmp_path / "run")
    assert result.config["model"] == "linear"
    stored = wrssl.load(tmp_path / "run")
    assert torch.allclose(stored.model.state_dict()["rows.center"], torch.from_numpy(U.mean(0)), atol=1e-6)
    assert np.array_equal(stored.predict_proba(X), result.predict_proba(X))
    assert np.allclose(stored.judge(U[:50])["ood_score"], result.judge(U[:50])["ood_score"])


@pytest.mark.parametrize("name", ["linear", "two-layer", "two-layer-nobn"])
def test_an_outline_has_the_same_parameters(name):
    built = build_model(name, (6,), 3, torch.Generator().manual_seed(0))
    outline = outline_model(name, (6,), 3)
    assert {k: v.shape for k, v in built.state_dict().items()} == {k: v.shape for k, v in outline.state_dict().items()}
