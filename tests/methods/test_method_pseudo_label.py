"""Pseudo-Label against NumPy: the three target rules, the threshold, the gradient."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from wrssl.api import OptionError, WRSSLError
from wrssl.methods import METHODS

TAU = 0.7


def by_hand(ref, z, compat):
    """(r, dr/dz), each rule written down as its own source has it."""
    p = ref.softmax(z)
    sure = p.max(1) >= TAU
    onehot = np.eye(z.shape[1])[p.argmax(1)]
    if compat == "hard":
        return np.where(sure, -np.log(p.max(1)), 0.0), sure[:, None] * (p - onehot)
    if compat == "oliver":  # teacher logits: ten times one-hot where sure, else the student's own
        teacher = ref.softmax(np.where(sure[:, None], 10 * onehot, z))
        return ref.kl(teacher, p), p - teacher
    target = np.where(sure[:, None], 10 * onehot, p)  # ten times one-hot taken for probabilities
    return -(target * np.log(p)).sum(1), target.sum(1, keepdims=True) * p - target


@pytest.fixture
def logits(ref):
    z = 2 * ref.normal(40, 4, seed=1)
    share = (ref.softmax(z.numpy()).max(1) >= TAU).mean()
    assert 0.2 < share < 0.8, "both sides of the threshold are needed"
    return z


@pytest.mark.parametrize("compat", ["hard", "oliver", "wrssl"])
def test_loss_and_gradient(compat, ref, logits):
    method = METHODS.create("pl", {"threshold": TAU, "compat": compat})
    z = logits.clone().requires_grad_()
    targets = method.targets(z)
    assert not targets.requires_grad
    r = method.loss(z, targets)
    (gradient,) = torch.autograd.grad(r.sum(), z)
    want, slope = by_hand(ref, logits.numpy(), compat)
    ref.close(r, want)
    ref.close(gradient, slope)


@pytest.mark.parametrize("compat", ["hard", "oliver", "wrssl"])
def test_views_and_parameter_gradients(compat, ref, make_net, x, make_context):
    net, method = make_net(scale=3.0), METHODS.create("pl", {"threshold": TAU, "compat": compat})
    views = method.views(net, x, make_context(noise=0.5))
    assert views.inputs is x, "pl needs no noise"
    r = method.loss(net.head(views.features), views.targets)
    twin = ref.Net(net.module)
    want, slope = by_hand(ref, twin.logits(x.numpy()), compat)
    assert 0 < (twin.probabilities(x.numpy()).max(1) >= TAU).sum() < 9
    ref.close(r, want)
    gradients = torch.autograd.grad(r.sum(), list(net.module.parameters()))
    for got, expected in zip(gradients, twin.parameter_gradients(x.numpy(), slope), strict=True):
        ref.close(got, expected)


@pytest.mark.parametrize("compat", ["hard", "oliver"])
def test_below_the_threshold_loss_and_gradient_are_exactly_zero(compat, logits):
    method = METHODS.create("pl", {"threshold": 0.999999, "compat": compat})
    z = logits.clone().requires_grad_()
    r = method.loss(z, method.targets(z))
    (gradient,) = torch.autograd.grad(r.sum(), z)
    assert (r == 0).all()
    assert (gradient == 0).all()


@pytest.mark.parametrize("compat", ["hard", "oliver", "wrssl"])
def test_the_threshold_itself_is_confident(compat):
    z = torch.zeros(1, 2, dtype=torch.float64)  # p = (½, ½) without rounding
    reached = METHODS.create("pl", {"threshold": 0.5, "compat": compat}).targets(z)
    missed = METHODS.create("pl", {"threshold": math.nextafter(0.5, 1.0), "compat": compat}).targets(z)
    soft = 1 / (1 + math.exp(-10))
    confident = {"hard": [1.0, 0.0], "oliver": [soft, 1 - soft], "wrssl": [10.0, 0.0]}[compat]
    assert reached[0].tolist() == pytest.approx(confident, abs=1e-15)
    assert missed[0].tolist() == ([0.5, 0.5] if compat == "wrssl" else [0.0, 0.0])


def test_the_published_code_multiplies_the_confident_loss_by_ten(logits):
    hard, ten = (METHODS.create("pl", {"threshold": 0.0, "compat": c}) for c in ("hard", "wrssl"))
    torch.testing.assert_close(ten.loss(logits, ten.targets(logits)), 10 * hard.loss(logits, hard.targets(logits)))


def test_the_default_is_the_hard_label_at_95_percent():
    method = METHODS.create("pl")
    assert (method.threshold, method.compat) == (0.95, "hard")


def test_an_unknown_rule_lists_the_known_ones():
    with pytest.raises(OptionError, match="hard, oliver, wrssl, not 'soft'") as caught:
        METHODS.create("pl", {"compat": "soft"})
    assert isinstance(caught.value, WRSSLError)
