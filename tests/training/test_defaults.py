"""The defaults that the documentation promises: the paper's table, read once."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from torch import nn

import wrssl
from wrssl.evaluate import is_ood
from wrssl.models import build_model
from wrssl.registry import METHODS, WEIGHTINGS
from wrssl.training.effort import choose_steps


def test_the_arguments_of_fit():
    defaults = {k: p.default for k, p in inspect.signature(wrssl.fit).parameters.items()}
    fixed = {
        "model": "auto", "method": "vat", "weights": "wr", "bn": "weighted", "steps": "auto", "seed": 0,
        "gate": None, "fallback": True, "out": None, "device": None, "batch_size": 100,
    }  # fmt: skip
    assert {k: defaults[k] for k in fixed} == fixed
    assert list(defaults)[: 1 + 10] == ["scenario", *list(fixed)[:10]]


def test_named_scenarios_train_for_2000_steps(moons):
    def never(number):
        raise AssertionError("no trial is needed")

    assert choose_steps("auto", moons, never) == 2000


@pytest.mark.parametrize(
    ("name", "coef", "lr"),
    [("pi", 20, 3e-3), ("mt", 8, 4e-4), ("vat", 0.3, 3e-3), ("pl", 1, 3e-4), ("entmin", 0.06, 3e-3)],
)
def test_coefficients_and_learning_rates(name, coef, lr):
    method = METHODS.create(name)
    assert (method.coef, method.lr) == (coef, lr)


def test_the_weighting_of_the_paper():
    weighting = WEIGHTINGS.create("wr-cluster")
    request = weighting.request(0)
    assert (request.J, request.P, weighting.every, weighting.K) == (3, 5, 5, 20)
    assert (request.scope, request.solver, request.alpha, request.mixed_at) == ("head", "neumann", None, "end")
    assert (weighting.descent.beta, weighting.descent.l1, weighting.descent.plain) == (0.1, 1e-7, False)
    assert [step for step in range(12) if weighting.request(step) is not None] == [0, 5, 10]


def test_the_default_weighting():
    weighting = WEIGHTINGS.create("wr")
    request = weighting.request(0)
    assert (request.solver, request.scope, request.J, request.P, request.damping) == ("cg", "head", 0, 10, 0.01)
    assert (request.curvature, request.outer, request.outer_loss) == ("gauss-newton", "validation", "error")
    assert [step for step in range(12) if weighting.request(step) is not None] == [0, 5, 10]
    assert (weighting.refinement.K, weighting.plan.floor) == (20, 0.05)
    assert (weighting.refine, weighting.admit, weighting.refresh, weighting.embedding) == (True, True, 0, "pca")
    assert weighting.kinds == ("linear", "quadratic", "kernel", "kernel-narrow")


@pytest.mark.parametrize("weights", ["wr", "wr-cluster"])
@pytest.mark.parametrize("clusters", [5, 30])
def test_k_is_the_number_of_clusters(weights, clusters, moons):
    options = {"weights": weights, "weight_options": {"K": clusters}}
    result = wrssl.fit(moons, method="entmin", steps=2, fallback=False, **options)
    assert result.verdicts["cluster"].nunique() == clusters


def test_mean_weights_are_those_of_the_two_groups(moons):
    result = wrssl.fit(moons, method="entmin", weights="wr-instance", weight_options={"L": 1}, steps=10)
    foreign = is_ood(moons).numpy()
    assert result.metrics["mean_weight_id"] == pytest.approx(result.weights[~foreign].mean())
    assert result.metrics["mean_weight_ood"] == pytest.approx(result.weights[foreign].mean())
    assert np.ptp(result.weights) > 0


def test_every_batch_norm_of_a_wide_resnet_is_converted():
    model = build_model("wrn-28-2", (3, 8, 8), 2, torch.Generator().manual_seed(0))
    plain = sum(isinstance(m, nn.BatchNorm2d) for m in model.modules())
    wrssl.convert_batchnorm(model)
    assert sum(type(m) is wrssl.WeightedBatchNorm2d for m in model.modules()) == plain > 20
