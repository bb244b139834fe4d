"""Entropy minimization against NumPy."""

from __future__ import annotations

import math

import numpy as np
import torch

from wrssl.methods import METHODS


def test_views_loss_and_gradient(ref, make_net, x, make_context):
    net, method = make_net(), METHODS.create("entmin")
    views = method.views(net, x, make_context(noise=0.5))
    assert views.inputs is x
    assert views.targets.shape == (9, 0)
    twin = ref.Net(net.module)
    p = twin.probabilities(x.numpy())
    r = method.loss(net.head(views.features), views.targets)
    ref.close(r, -(p * np.log(p)).sum(1))
    slope = ref.through_softmax(p, -np.log(p) - 1)
    gradients = torch.autograd.grad(r.sum(), list(net.module.parameters()))
    for got, expected in zip(gradients, twin.parameter_gradients(x.numpy(), slope), strict=True):
        ref.close(got, expected)


def test_by_hand():
    z = torch.tensor(
        [[0.0, 0.0, 0.0, 0.0], [500.0, 0.0, 0.0, 0.0], [math.log(3), 0.0, -1e4, -1e4]], dtype=torch.float64
    )
    r = METHODS.create("entmin").loss(z.requires_grad_(), z.new_zeros(3, 0))
    want = [math.log(4), 0.0, -0.75 * math.log(0.75) - 0.25 * math.log(0.25)]
    torch.testing.assert_close(r, torch.tensor(want, dtype=torch.float64), rtol=0, atol=1e-12)
    r.sum().backward()
    assert torch.isfinite(z.grad).all()
