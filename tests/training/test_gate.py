"""The gate: a step in which the pool opposes the labels is a step of the labels alone."""

from __future__ import annotations

import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import wrssl
from wrssl.api import Context, OptionError, Pool
from wrssl.config import FitConfig
from wrssl.data import torch_stream
from wrssl.models import split
from wrssl.registry import METHODS, WEIGHTINGS
from wrssl.training import PolicyNet, TrainingStep
from wrssl.training.batches import Batch, LabeledBatch
from wrssl.training.step import Gate, make_gate

RATE, COEF = 0.1, 0.7


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make(method="pl", weights="none", gate=True, bias=True):
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2, bias=bias)).double()
    with torch.no_grad():
        for number, p in enumerate(model.parameters()):
            p.copy_(randn(*p.shape, seed=number))
    net = PolicyNet(split(model, randn(4, 3, seed=9)), "batch")
    base = METHODS.create(method, {"coef": COEF, **({"threshold": 0.0} if method == "pl" else {})})
    weighting = WEIGHTINGS.create(weights, {"scope": "head"} if weights == "l2rw" else None)
    weighting.setup(Pool(30, 2, lambda kind: randn(30, 3, seed=3).float(), 0))
    optimizer = torch.optim.SGD(net.module.parameters(), lr=RATE)
    return TrainingStep(net, base, weighting, optimizer, Gate() if gate else None)


def data(seed=0, x_l=None, y_l=None):
    x_l = randn(6, 3, seed=10 * seed + 11) if x_l is None else x_l
    y_l = (torch.arange(6) + seed) % 2 if y_l is None else y_l
    x_u, x_v = randn(8, 3, seed=10 * seed + 12), randn(7, 3, seed=10 * seed + 14)
    return Batch(x_l, y_l, x_u, torch.arange(4, 12), (x_v, torch.arange(7) % 2))


def context():
    return Context(0, 10, torch_stream(0, "augment"), torch_stream(0, "attack"), 0.1, 0.5)


def gradients(step, batch, factors):
    """Of the labeled term and of the pool's, by all parameters, with Pseudo-Label or the entropy written out."""
    model, parameters = step.net.module, list(step.net.module.parameters())
    z = model(batch.x_u)
    if step.method.curvature == "ce":
        r = F.cross_entropy(z, z.argmax(1), reduction="none")
    else:
        r = -(z.softmax(1) * z.log_softmax(1)).sum(1)
    terms = F.cross_entropy(model(batch.x_l), batch.y_l), COEF * (factors * r).mean()
    return [torch.autograd.grad(term, parameters) for term in terms]


def head_product(ours, theirs, size):
    return float(sum((a * b).sum() for a, b in zip(ours[-size:], theirs[-size:], strict=True)))


@pytest.mark.parametrize("opposes", [True, False])
def test_a_pool_that_opposes_the_labels_is_left_out_and_one_that_agrees_is_not(opposes):
    """The pool is the labeled batch; Pseudo-Label pulls to the decision, and the labels are that or its opposite."""
    step = make()
    x = randn(6, 3, seed=5)
    decision = step.net.module(x).argmax(1)
    batch = Batch(x, 1 - decision if opposes else decision, x, torch.arange(6))
    before = [p.detach().clone() for p in step.net.module.parameters()]
    ours, theirs = gradients(step, batch, torch.ones(6, dtype=torch.float64))
    assert (head_product(ours, theirs, 2) < 0) == opposes
    outcome = step(batch, context())
    assert outcome.open.item() == (0 if opposes else 1)
    for p, old, a, b in zip(step.net.module.parameters(), before, ours, theirs, strict=True):
        torch.testing.assert_close(p.detach(), old - RATE * (a if opposes else a + b), rtol=0, atol=1e-12)
        assert b.abs().max() > 1e-3


@pytest.mark.parametrize(
    ("method", "weights", "bias"), [("pl", "none", True), ("entmin", "l2rw", True), ("pl", "none", False)]
)
def test_steps_against_an_independent_decision(method, weights, bias):
    """Both outcomes occur; the weights of this very step count; without a bias the matrix decides alone."""
    seen = []
    for seed in range(20):
        step, batch = make(method, weights, bias=bias), data(seed)
        before = [p.detach().clone() for p in step.net.module.parameters()]
        twin = make(method, weights, gate=False, bias=bias)
        twin(batch, context(), twin.weighting.request(0))
        factors = twin.weighting.batch(batch.index).factor.double()
        ours, theirs = gradients(step, batch, factors)
        passes = head_product(ours, theirs, 1 + bias) >= 0
        outcome = step(batch, context(), step.weighting.request(0))
        assert outcome.open.item() == passes
        for p, old, a, b in zip(step.net.module.parameters(), before, ours, theirs, strict=True):
            torch.testing.assert_close(p.detach(), old - RATE * (a + passes * b), rtol=0, atol=1e-10)
        seen.append(passes)
    assert 2 < sum(seen) < 18


@pytest.mark.parametrize("bias", [True, False])
def test_the_sign_over_many_draws(bias):
    seen = []
    for seed in range(150):
        generator = torch.Generator().manual_seed(seed)
        draw = [torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (5, 7, 3)]
        with torch.random.fork_rng(devices=[]):
            head = nn.Linear(4, 3, bias=bias).double()
        with torch.no_grad():
            head.weight.copy_(draw[2])
        y = torch.randint(3, (5,), generator=generator)
        targets = torch.randint(3, (7,), generator=generator)
        h_u = draw[1].clone().requires_grad_()
        term = F.cross_entropy(head(h_u), targets)
        opened = Gate()(head, LabeledBatch(draw[0], draw[0], y), term)
        known = F.cross_entropy(head(draw[0]), y)
        ours, theirs = (torch.autograd.grad(t, list(head.parameters()), retain_graph=True) for t in (known, term))
        assert opened.item() == (head_product(ours, theirs, 1 + bias) >= 0)
        assert opened.dtype == term.dtype
        assert not opened.requires_grad
        seen.append(opened.item())
        term.backward()  # the graph is still there
        assert h_u.grad is not None
    assert set(seen) == {0.0, 1.0}
    assert 20 < sum(seen) < 130


def test_a_gate_costs_no_pass_and_without_one_nothing_is_reported():
    images = []
    for gate in (True, False):
        step = make("vat", gate=gate)
        outcomes = [step(data(seed), context()) for seed in range(3)]
        images.append(dict(step.net.images))
        assert all((outcome.open is not None) == gate for outcome in outcomes)
    assert images[0] == images[1]
    assert sum(images[0].values()) == 3 * (6 + 3 * 8)


def test_a_pool_without_influence_passes():
    """With a term of 0 the gate stays open."""
    step = make("pl")
    step.method.threshold = 2.0
    assert step(data(), context()).open.item() == 1


def test_fit_reports_the_share_of_open_steps(moons):
    history = wrssl.fit(moons, method="vat", weights="none", gate="cosine", steps=60, seed=0).history
    assert history["gate_open"].between(0, 1).all()
    assert 0 < history["gate_open"].mean() < 1
    plain = wrssl.fit(moons, method="vat", weights="none", steps=60, seed=0).history
    assert plain["gate_open"].isna().all()
    assert not plain["labeled"].equals(history["labeled"])


def test_a_gate_that_cannot_be_is_refused_with_a_sentence():
    assert make_gate(None, METHODS.create("supervised")) is None
    assert isinstance(make_gate("cosine", METHODS.create("pl")), Gate)
    with pytest.raises(OptionError, match="There is no gate 'sine'; choose 'cosine', or leave it out"):
        FitConfig(gate="sine")
    mixing = [name for name in wrssl.list_methods() if METHODS.get(name).mixes_labeled]
    for name in ("supervised", *mixing):
        with pytest.raises(OptionError, match="does not have both; leave gate=None"):
            make_gate("cosine", METHODS.create(name))


def test_the_command_line_hands_it_on(monkeypatch):
    given = {}

    def fit(scenario, **options):
        given.update(options)
        raise OptionError("enough")

    monkeypatch.setattr(wrssl, "fit", fit)
    for arguments, gate in ((["--gate", "cosine"], "cosine"), ([], None)):
        monkeypatch.setattr(sys, "argv", ["wrssl", "fit", "--scenario", "moons", "--steps", "2", *arguments])
        from wrssl.cli import main

        with pytest.raises(SystemExit):
            main()
        assert given["gate"] == gate
