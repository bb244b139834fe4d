"""Channels innermost: the same images, the same networks, for one channel too."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from wrssl.models import build_model
from wrssl.models.images import channels_last


@pytest.mark.parametrize("shape", [(4, 1, 5, 6), (4, 3, 5, 6), (1, 1, 8, 8), (2, 3, 1, 1)], ids=str)
def test_the_same_images_with_channels_innermost(shape, generator):
    x = torch.randn(shape, generator=generator).requires_grad_()
    y = channels_last(x)
    assert torch.equal(x, y)
    _, channels, height, width = shape
    assert y.stride() == (channels * height * width, 1, channels * width, channels)
    g = torch.randn(shape, generator=generator)
    assert torch.equal(torch.autograd.grad(y, x, g)[0], g)


def test_images_elsewhere_than_on_a_cpu_stay_as_they_are():
    x = torch.empty(2, 3, 4, 4, device="meta")
    assert channels_last(x) is x


@pytest.mark.parametrize("name", ["small_cnn", "small_cnn-nobn", "wrn-28-2", "wrn-28-2-nobn"])
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 12, 8)], ids=str)
def test_networks_keep_that_order_and_compute_the_same(name, shape, generator, monkeypatch):
    model = build_model(name, shape, 5, generator).double()
    x = torch.randn(6, *shape, generator=generator, dtype=torch.float64)
    results = []
    for ordered in (True, False):
        if not ordered:
            for module in ("networks", "wide_resnet"):
                monkeypatch.setattr(f"wrssl.models.{module}.channels_last", lambda images: images)
        loss = F.cross_entropy(model(x), torch.arange(6) % 5)
        results.append([loss, *torch.autograd.grad(loss, model.parameters())])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("name", ["small_cnn", "wrn-28-2"])
def test_every_convolution_gets_that_order(name, generator):
    model, orders = build_model(name, (1, 8, 8), 5, generator), []
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_pre_hook(lambda _, inputs: orders.append(inputs[0].stride(1)))
    model(torch.randn(2, 1, 8, 8, generator=generator))
    assert orders
    assert set(orders) == {1}
