"""One step against the formula, computed a second time by hand."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wrssl.api import Context, HypergradientRequest, Pass, Pool
from wrssl.data import torch_stream
from wrssl.hypergrad import implicit_hypergradient
from wrssl.models import split
from wrssl.norm import convert_batchnorm
from wrssl.registry import METHODS, WEIGHTINGS
from wrssl.training.batches import Batch, LabeledBatch
from wrssl.training.hypergradient import StepRows, head_problem, network_problem
from wrssl.training.passes import PolicyNet
from wrssl.training.step import TrainingStep


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make(method="pl", weights="none", bn="weighted", weight_options=None, method_options=None):
    model = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2)).double()
    with torch.no_grad():
        for number, p in enumerate(model.parameters()):
            p.copy_(randn(*p.shape, seed=number) * 0.7)
    net = PolicyNet(split(convert_batchnorm(model), randn(4, 3, seed=9)), bn)
    base, weighting = METHODS.create(method, method_options), WEIGHTINGS.create(weights, weight_options)
    base.setup(net)
    truth = torch.arange(30) % 3 == 0
    weighting.setup(Pool(30, 2, lambda kind: randn(30, 3, seed=3).float(), 0, truth))
    optimizer = torch.optim.SGD(net.module.parameters(), lr=0.1)
    return net, base, weighting, TrainingStep(net, base, weighting, optimizer)


def batch(validation=True, held_out=None):
    x_v = (randn(7, 3, seed=14), torch.arange(7) % 2) if validation else None
    return Batch(randn(6, 3, seed=11), torch.arange(6) % 2, randn(8, 3, seed=12), torch.arange(4, 12), x_v, held_out)


def context(step=0):
    return Context(step, 10, torch_stream(0, "augment", step), torch_stream(0, "attack", step), 0.1, 0.5)


def take(step, data, number=0):
    """Step ``number`` with this batch, as the loop takes it."""
    step.weighting.begin(number)
    return step(data, context(number), step.weighting.request(number))


def by_hand(model, data, w, threshold):
    """CE + mean(w·r) for Pseudo-Label with weighted batch norm, from raw matrices."""
    a, bn, _, b = model

    def forward(x, weights):
        h = x @ a.weight.T + a.bias
        share = (weights / weights.sum()).unsqueeze(1)
        mean = (share * h).sum(0)
        var = (share * (h - mean) ** 2).sum(0)
        h = (h - mean) / (var + bn.eps).sqrt() * bn.weight + bn.bias
        return h.relu() @ b.weight.T + b.bias

    labeled = F.cross_entropy(forward(data.x_l, torch.ones(6, dtype=torch.float64)), data.y_l)
    z = forward(data.x_u, w)
    p = z.softmax(1)
    confidence, label = p.detach().max(1)
    r = (confidence >= threshold) * F.cross_entropy(z, label, reduction="none")
    return labeled, (w * r).mean()


def test_loss_and_update_follow_the_formula():
    net, _, weighting, step = make("pl", "oracle", method_options={"threshold": 0.6, "coef": 0.7})
    data = batch()
    reference = copy.deepcopy(net.module)
    labeled, unlabeled = by_hand(reference, data, weighting.batch(data.index).weight.double(), 0.6)
    loss = labeled + 0.7 * unlabeled
    gradients = torch.autograd.grad(loss, list(reference.parameters()))
    outcome = take(step, data)
    assert unlabeled > 0
    torch.testing.assert_close(outcome.loss, loss.detach(), atol=1e-12, rtol=0)
    torch.testing.assert_close(outcome.unlabeled, unlabeled.detach(), atol=1e-12, rtol=0)
    for p, old, g in zip(net.module.parameters(), reference.parameters(), gradients, strict=True):
        torch.testing.assert_close(p, old - 0.1 * g, atol=1e-12, rtol=0)


@pytest.mark.parametrize("method", ["pl", "pi", "mt", "vat", "entmin"])
def test_zero_weights_leave_the_supervised_step(method):
    """w = 0 on the whole batch: the parameters move as if there were no pool (frozen BN, so buffers too)."""
    options = {"threshold": 0.0} if method == "pl" else {}
    net, _, weighting, step = make(method, "wr-instance", "frozen", {"L": 1000}, options)
    weighting.table.zero_()
    supervised, _, _, plain = make("supervised", "none", "frozen")
    take(step, batch(), 1)
    take(plain, batch(), 1)
    for p, q in zip(net.module.state_dict().values(), supervised.module.state_dict().values(), strict=True):
        torch.testing.assert_close(p, q, atol=1e-12, rtol=0)


@pytest.mark.parametrize("scope", ["head", "network"])
@pytest.mark.parametrize("method", ["pl", "pi", "mt", "vat", "entmin"])
def test_the_weight_update_moves_weights_but_not_the_model(scope, method):
    """The look-ahead acts on a copy: with learning rate 0, a step with J = 3 leaves the parameters bit-identical."""
    options = {"threshold": 0.0} if method == "pl" else {}
    net, _, weighting, step = make(method, "wr-instance", "weighted", {"L": 1, "scope": scope}, options)
    step.optimizer.param_groups[0]["lr"] = 0.0
    before = copy.deepcopy(net.module.state_dict())
    twin_net, _, _, plain = make(method, "none", "batch", None, options)
    plain.optimizer.param_groups[0]["lr"] = 0.0
    outcome = take(step, batch())
    take(plain, batch())
    assert outcome.estimate is not None
    assert not torch.equal(weighting.table, torch.ones(30))
    assert torch.equal(weighting.table[12:], torch.ones(18))  # members that were not in the batch
    for name, value in net.module.state_dict().items():
        if "running" in name or "tracked" in name:
            # all weights were 1: the same buffers as plain training; validation and look-ahead left no trace
            torch.testing.assert_close(value, twin_net.module.state_dict()[name], atol=1e-12, rtol=0)
        else:
            assert torch.equal(value, before[name])


@pytest.mark.parametrize("curvature", ["exact", "gauss-newton"])
@pytest.mark.parametrize("method", ["pi", "mt", "vat", "entmin"])
def test_head_problem_equals_network_problem_where_only_the_head_is_trained(method, curvature):
    """Two independent codes for the same derivative: closed form on features, and autograd on the whole model."""
    net, base, _, _ = make(method, "none", "batch")
    data = batch()
    for p in net.module.parameters():
        p.requires_grad_(p is net.head.weight or p is net.head.bias)
    x_v, y_v = data.validation
    w = torch.linspace(0.2, 1, 8, dtype=torch.float64)
    net.weights = w
    views = base.views(net, data.x_u, context())
    with torch.no_grad():
        labeled = LabeledBatch(data.x_l, net.features(data.x_l, Pass.LOOKAHEAD), data.y_l)
        validation = LabeledBatch(x_v, net.features(x_v, Pass.VALIDATION), y_v)
    rows, request = StepRows(labeled, views, w, validation), HypergradientRequest(curvature=curvature)
    head, network = head_problem(net, base, rows, request), network_problem(net, base, rows, request)
    estimates = [
        implicit_hypergradient(p, "neumann", terms=4, lookahead=2, step=0.05, diagnose=False).gradient
        for p in (head, network)
    ]
    torch.testing.assert_close(*estimates, atol=1e-12, rtol=1e-9)


def test_cross_fitting_leaves_the_fold_out_of_the_labeled_loss():
    net, _, _, step = make("entmin", "wr-instance", "batch", {"L": 1})
    held_out = torch.tensor([True, False, False, False, False, True])
    data = batch(validation=False, held_out=held_out)
    with torch.no_grad():
        logits = net.logits(data.x_l, Pass.LOOKAHEAD)
    outcome = take(step, data)
    expected = F.cross_entropy(logits[~held_out], data.y_l[~held_out])
    torch.testing.assert_close(outcome.labeled, expected, atol=1e-12, rtol=0)
    assert net.images[Pass.VALIDATION] == 0


def test_passes_and_images_are_the_same_for_every_weighting():
    counts = []
    for weights in ("none", "oracle", "wr-instance", "wr-cluster"):
        net, _, _, step = make("vat", weights)
        for number in range(6):
            take(step, batch(), number)
        counts.append(net.images_forwarded())
    assert counts == [6 * (6 + 3 * 8)] * 4  # labeled, clean, power iteration, perturbed


def test_permuting_weights_changes_the_loss():
    """(B,)·(B, 1) would make every example count the same."""
    losses = []
    for order in (torch.arange(8), torch.arange(7, -1, -1)):
        _, _, weighting, step = make("entmin", "wr-instance", "batch", {"L": 1000})
        weighting.table[4:12] = torch.linspace(0, 1, 8)[order]
        losses.append(float(take(step, batch(), 1).unlabeled))
    assert not np.isclose(*losses)
