"""Pseudo-Label against NumPy: the hard label, the inclusive threshold, the gradient."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from wrssl.api import OptionError, WRSSLError
from wrssl.methods import METHODS

TAU = 0.7


def by_hand(ref, z):
    """(r, dr/dz)."""
    p = ref.softmax(z)
    sure = p.max(1) >= TAU
    onehot = np.eye(z.shape[1])[p.argmax(1)]
    return np.where(sure, -np.log(p.max(1)), 0.0), sure[:, None] * (p - onehot)


@pytest.fixture
def logits(ref):
    z = 2 * ref.normal(40, 4, seed=1)
    share = (ref.softmax(z.numpy()).max(1) >= TAU).mean()
    assert 0.2 < share < 0.8, "both sides of the threshold are needed"
    return z


def test_loss_and_gradient(ref, logits):
    method = METHODS.create("pl", {"threshold": TAU})
    z = logits.clone().requires_grad_()
    targets = method.targets(z)
    assert not targets.requires_grad
    r = method.loss(z, targets)
    (gradient,) = torch.autograd.grad(r.sum(), z)
    want, slope = by_hand(ref, logits.numpy())
    ref.close(r, want)
    ref.close(gradient, slope)


def test_views_and_parameter_gradients(ref, make_net, x, make_context):
    net, method = make_net(scale=3.0), METHODS.create("pl", {"threshold": TAU})
    views = method.views(net, x, make_context(noise=0.5))
    assert views.inputs is x, "pl needs no noise"
    r = method.loss(net.head(views.features), views.targets)
    twin = ref.Net(net.module)
    want, slope = by_hand(ref, twin.logits(x.numpy()))
    assert 0 < (twin.probabilities(x.numpy()).max(1) >= TAU).sum() < 9
    ref.close(r, want)
    gradients = torch.autograd.grad(r.sum(), list(net.module.parameters()))
    for got, expected in zip(gradients, twin.parameter_gradients(x.numpy(), slope), strict=True):
        ref.close(got, expected)


def test_below_the_threshold_loss_and_gradient_are_exactly_zero(logits):
    method = METHODS.create("pl", {"threshold": 0.999999})
    z = logits.clone().requires_grad_()
    r = method.loss(z, method.targets(z))
    (gradient,) = torch.autograd.grad(r.sum(), z)
    assert (r == 0).all()
    assert (gradient == 0).all()


def test_the_threshold_itself_is_confident():
    z = torch.zeros(1, 2, dtype=torch.float64)  # p = (½, ½) without rounding
    reached = METHODS.create("pl", {"threshold": 0.5}).targets(z)
    missed = METHODS.create("pl", {"threshold": math.nextafter(0.5, 1.0)}).targets(z)
    assert reached.tolist() == [[1.0, 0.0]]
    assert missed.tolist() == [[0.0, 0.0]]


def test_the_default_is_the_hard_label_at_95_percent():
    method = METHODS.create("pl")
    assert (method.threshold, method.coef, method.lr, method.curvature) == (0.95, 1.0, 3e-4, "ce")


def test_the_rules_of_published_programs_are_no_option():
    """They are methods of the reproduction, which registers them under names of their own."""
    with pytest.raises(OptionError, match="has no option 'compat'; its options are: threshold, coef, lr") as caught:
        METHODS.create("pl", {"compat": "oliver"})
    assert isinstance(caught.value, WRSSLError)
