"""Each method learns: on two half moons with few labels the loss that it trains goes down, and augmentation helps."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wrssl.api import Context, Pass
from wrssl.methods import METHODS
from wrssl.models import split
from wrssl.norm import convert_batchnorm
from wrssl.training import PolicyNet


def two_moons(ref, n, seed):
    """Two half circles that reach into each other."""
    angle = torch.linspace(0, math.pi, n, dtype=torch.float64)
    upper = torch.stack([angle.cos(), angle.sin()], 1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
    x = torch.cat([upper, lower]) + 0.1 * ref.normal(2 * n, 2, seed=seed)
    return x, torch.arange(2 * n) // n


def network(ref, policy):
    sizes, layers = [2, 16, 16, 2], []
    for number, (d, k) in enumerate(pairwise(sizes)):
        layer = nn.utils.skip_init(nn.Linear, d, k, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(ref.normal(k, d, seed=number) * (2 / d) ** 0.5)
            layer.bias.zero_()
        layers += [layer] if k == 2 else [layer, nn.BatchNorm1d(k).double(), nn.ReLU()]
    model = convert_batchnorm(nn.Sequential(*layers)).train()
    return PolicyNet(split(model, ref.normal(4, 2, seed=9)), policy)


class Blur:
    """The scenario's noise is the weak view; the strong one has more of it."""

    def weak(self, x, generator):
        return x

    def strong(self, x, generator):
        return x + 0.2 * torch.randn(x.shape, generator=generator, dtype=x.dtype)


def train(ref, name, options):
    """200 steps; (loss, unlabeled loss) of each, and the accuracy on the pool at the end."""
    pool, truth = two_moons(ref, 100, seed=1)
    rows = torch.tensor([5, 30, 60, 95, 105, 130, 160, 195])
    net, method = network(ref, "batch"), METHODS.create(name, options)
    method.setup(net)
    optimizer = torch.optim.Adam(net.module.parameters(), lr=5e-3)
    history = []
    for step in range(200):
        generators = (torch.Generator().manual_seed(2 * step + k) for k in (0, 1))
        known = pool[rows], truth[rows]
        context = Context(step, 200, *generators, noise=0.15, epsilon=0.3, augmentation=Blur(), labeled=known)
        labeled = 0.0  # where the method brings the labels along
        if not method.mixes_labeled:
            labeled = F.cross_entropy(net.logits(pool[rows], Pass.LABELED), truth[rows])
        views = method.views(net, pool, context)
        unlabeled = method.loss(net.head(views.features), views.targets).mean()
        loss = labeled + method.coef * unlabeled
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        method.after_step(net, step)
        history.append([loss.item(), unlabeled.item()])
    with torch.no_grad():
        accuracy = (net.logits(pool, Pass.VALIDATION).argmax(1) == truth).double().mean()
    return torch.tensor(history), accuracy


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("supervised", {}),
        ("pl", {"threshold": 0.8}),
        ("pi", {"coef": 5.0}),
        ("mt", {}),
        ("vat", {"coef": 1.0}),
        ("vat", {"coef": 1.0, "kl": "miyato"}),
        ("entmin", {"coef": 1.0}),
        ("uda", {}),
        ("fixmatch", {"threshold": 0.8}),
    ],
)
def test_some_hundred_steps_lower_the_loss(name, options, ref):
    history, accuracy = train(ref, name, options)
    first, last = history[:10].mean(0), history[-10:].mean(0)
    assert last[0] < 0.5 * first[0]
    assert accuracy > 0.85
    if name == "supervised":
        return
    # The term does something: without it, the same training ends with more of it.
    without, _ = train(ref, name, {**options, "coef": 0.0})
    assert without[:, 1].max() > 0
    assert last[1] < 0.6 * without[-10:, 1].mean()


def test_mixing_lowers_the_loss(ref):
    """Not to 0: a mixture of two classes is uncertain by intention."""
    history, _ = train(ref, "mixmatch", {"coef": 3.0, "ramp": 0.0})
    assert history[-10:, 0].mean() < 0.6 * history[:10, 0].mean()


def test_augmented_views_of_the_pool_are_worth_more_than_the_labels_alone(ref):
    _, alone = train(ref, "supervised", {})
    assert 0.8 < alone < 0.92
    for name, options in (("uda", {}), ("fixmatch", {"threshold": 0.8}), ("mixmatch", {"coef": 3.0})):
        _, accuracy = train(ref, name, options)
        assert accuracy > alone + 0.04, name
