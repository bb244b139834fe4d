"""Π-Model against NumPy: two noises, one of them behind the gradient."""

from __future__ import annotations

import pytest
import torch

from wrssl.methods import METHODS

AUGMENT = 101  # the seed of the context's generator


def by_hand(ref, net, x, noise):
    """(first inputs, targets, r, dr/dz of the first view)."""
    first, second = ref.noise(x.shape, AUGMENT, 2)
    twin, inputs = ref.Net(net.module), x.numpy() + noise * first
    p, t = twin.probabilities(inputs), twin.probabilities(x.numpy() + noise * second)
    return inputs, t, ((p - t) ** 2).sum(1) / 3, ref.through_softmax(p, 2 * (p - t) / 3)


@pytest.mark.parametrize("noise", [0.15, 1.0])
def test_views_and_loss(noise, ref, make_net, x, make_context):
    net, method = make_net(), METHODS.create("pi")
    views = method.views(net, x, make_context(noise=noise))
    inputs, targets, r, _ = by_hand(ref, net, x, noise)
    ref.close(views.inputs, inputs)
    ref.close(views.targets, targets)
    ref.close(views.features, ref.Net(net.module).features(inputs))
    ref.close(method.loss(net.head(views.features), views.targets), r)


def test_the_gradient_flows_through_the_first_view_only(ref, make_net, x, make_context):
    net, method = make_net(), METHODS.create("pi")
    views = method.views(net, x, make_context(noise=0.5))
    r = method.loss(net.head(views.features), views.targets)
    gradients = torch.autograd.grad(r.sum(), list(net.module.parameters()))
    inputs, _, _, slope = by_hand(ref, net, x, 0.5)
    for got, expected in zip(gradients, ref.Net(net.module).parameter_gradients(inputs, slope), strict=True):
        ref.close(got, expected)


def test_without_noise_the_two_views_are_one(make_net, x, make_context):
    net, method = make_net(), METHODS.create("pi")
    views = method.views(net, x, make_context(noise=0.0))
    assert views.inputs is x
    assert torch.equal(net.calls[1].inputs, x)
    assert (method.loss(net.head(views.features), views.targets) == 0).all()


def test_the_scenario_says_how_much_noise(make_net, make_context):
    net, method = make_net(), METHODS.create("pi")
    x = torch.zeros(3000, 4, dtype=torch.float64)
    method.views(net, x, make_context(noise=0.15))
    for call in net.calls:
        assert call.inputs.std().item() == pytest.approx(0.15, rel=0.02)
        assert call.inputs.mean().item() == pytest.approx(0.0, abs=0.01)
    correlation = (net.calls[0].inputs * net.calls[1].inputs).mean() / 0.15**2
    assert abs(correlation) < 0.05, "the two noises are not independent"
