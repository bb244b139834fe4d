"""Weight decay: it reaches the optimizer, and the loss behind the hypergradient has it too."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import wrssl
from wrssl.api import HypergradientRequest, Pass, Views
from wrssl.hypergrad import head_hypergradient
from wrssl.models import split
from wrssl.registry import METHODS
from wrssl.training.batches import LabeledBatch
from wrssl.training.hypergradient import HypergradientEstimator, StepRows
from wrssl.training.passes import PolicyNet

RIDGE = 0.07


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("ridge", [RIDGE, 1.0])
def test_the_hypergradient_is_that_of_the_penalized_loss(ridge):
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)).double()
    net = PolicyNet(split(model, randn(4, 3, seed=9)), "batch")
    method = METHODS.create("pl", {"coef": 0.7})
    h_l, h_u, h_v, w = (*(randn(n, 5, seed=n) for n in (6, 8, 7)), torch.rand(8, dtype=torch.float64))
    y_l, y_v, targets = torch.arange(6) % 2, torch.arange(7) % 2, torch.eye(2, dtype=torch.float64)[torch.arange(8) % 2]
    rows = StepRows(
        LabeledBatch(h_l, h_l, y_l), Views(h_u, Pass.UNLABELED, h_u, targets), w, LabeledBatch(h_v, h_v, y_v)
    )
    found = HypergradientEstimator(net, method, ridge)(rows, HypergradientRequest(solver="exact", J=0)).gradient
    head = net.head.weight.detach(), net.head.bias.detach()
    expected = head_hypergradient(
        *head, h_l, y_l, h_u, targets, w, h_v, y_v, coef=0.7, ridge=ridge, curvature="gauss-newton"
    )
    assert (found - expected).abs().max() < 1e-12
    other = head_hypergradient(
        *head, h_l, y_l, h_u, targets, w, h_v, y_v, coef=0.7, ridge=2 * ridge, curvature="gauss-newton"
    )
    assert (found - other).abs().max() > 1e-6, "the penalty matters here"


def test_weight_decay_reaches_the_optimizer(moons):
    seen = []

    class Look(wrssl.Callback):
        def on_start(self, trainer):
            seen.append((trainer.optimizer.param_groups[0]["weight_decay"], trainer.perform.hypergradient.ridge))

    for decay in (None, RIDGE):
        wrssl.fit(moons, steps=1, fallback=False, weight_decay=decay, callbacks=[Look()])
    assert seen == [(0.0, 0.0), (RIDGE, RIDGE)]


@pytest.mark.parametrize(
    ("options", "rate"),
    [({}, 0.03), ({"lr": 0.5}, 0.5), ({"method_options": {"lr": 0.2}}, 0.2), ({"model": "two-layer"}, 3e-3)],
)
def test_a_rate_that_was_asked_for_goes_before_that_of_the_network(moons, options, rate):
    rates = []

    class Look(wrssl.Callback):
        def on_start(self, trainer):
            rates.append(trainer.plan.lr)

    given = {"model": "linear", "method": "vat", "steps": 1, "fallback": False, **options}
    wrssl.fit(moons, callbacks=[Look()], **given)
    assert rates == [rate]


@pytest.mark.parametrize("wrong", [-1.0, float("inf"), "much"])
def test_a_weight_decay_is_a_number_of_at_least_0(moons, wrong):
    with pytest.raises(wrssl.WRSSLError, match="weight_decay must be a number of at least 0"):
        wrssl.fit(moons, steps=1, weight_decay=wrong)
