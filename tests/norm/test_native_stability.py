"""Float32 on native kernels against a reference in float64, where cancellation could hurt."""

from __future__ import annotations

import pytest
import torch

from wrssl.norm import WeightedBatchNorm1d, WeightedBatchNorm2d, sample_weights, use_native_kernels

EPS32 = torch.finfo(torch.float32).eps


def both(x, w, g, layer=WeightedBatchNorm2d):
    """(output, gradient, running variance) of the native form in float32 and of the composed one in float64."""
    results = []
    for dtype in (torch.float32, torch.float64):
        norm, inputs = layer(x.shape[1], momentum=1.0).to(dtype), x.to(dtype).requires_grad_()
        use_native_kernels(norm, dtype == torch.float32)
        with sample_weights(norm, w):
            y = norm(inputs)
        (dx,) = torch.autograd.grad(y, inputs, g.to(dtype))
        results.append((y.detach().double(), dx.double(), norm.running_var.double()))
    return results


@pytest.mark.parametrize("ratio", [0.0, 1.0, 1e2, 1e3, 1e4, -1e4])
@pytest.mark.parametrize("shape", [(64, 3, 12, 12), (64, 3, 2, 2), (100, 4, 1, 1)], ids=str)
def test_a_mean_far_from_zero(ratio, shape, generator):
    x = ratio + torch.randn(shape, generator=generator)
    w, g = torch.rand(shape[0], generator=generator), torch.randn(shape, generator=generator)
    (y, dx, variance), (y64, dx64, variance64) = both(x, w, g)
    # A mean in float32 has a rounding of ratio · EPS32, and y one of its own size, about 4; the variance sees neither.
    size = 4 + abs(ratio)
    torch.testing.assert_close(y, y64, atol=2 * EPS32 * size, rtol=0)
    torch.testing.assert_close(dx, dx64, atol=4 * EPS32 * size, rtol=0)
    torch.testing.assert_close(variance, variance64, atol=0, rtol=20 * EPS32)


def test_the_reference_example_may_be_the_outlier(generator):
    """The worst case of the bound δ² ≤ N σ²: the heaviest example carries nearly all of the variance."""
    N = 100
    x = 1e-3 * torch.randn(N, 2, 5, 5, generator=generator) + 5
    x[17] += 40
    w, g = torch.ones(N), torch.randn(N, 2, 5, 5, generator=generator)
    w[17] = 1.0001
    (y, dx, variance), (y64, dx64, variance64) = both(x, w, g)
    # Two sums with the rounding of some additions, whose difference is 1/N of them.
    torch.testing.assert_close(variance, variance64, atol=0, rtol=8 * N * EPS32)
    torch.testing.assert_close(y, y64, atol=8 * N * EPS32 * float(y64.abs().max()), rtol=0)
    torch.testing.assert_close(dx, dx64, atol=8 * N * EPS32 * float(dx64.abs().max()), rtol=0)


@pytest.mark.parametrize("far", [1e2, 1e4])
def test_two_groups_far_apart(far, generator):
    """Foreign examples with some weight: the variance is that of the mixture, and each digit of it matters."""
    x = torch.randn(64, 3, 6, 6, generator=generator)
    x[40:] += far
    w, g = torch.rand(64, generator=generator), torch.randn(64, 3, 6, 6, generator=generator)
    (y, dx, variance), (y64, dx64, variance64) = both(x, w, g)
    torch.testing.assert_close(variance, variance64, atol=0, rtol=20 * EPS32)
    torch.testing.assert_close(y, y64, atol=20 * EPS32, rtol=0)
    torch.testing.assert_close(dx, dx64, atol=20 * EPS32 * float(dx64.abs().max()), rtol=0)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7e5])
@pytest.mark.parametrize("layer", [WeightedBatchNorm1d, WeightedBatchNorm2d])
def test_a_constant_channel(value, layer, generator):
    """σ² is cut at zero; what is left of x̂ must not be blown up by 1/√ε."""
    shape = (30, 2) if layer is WeightedBatchNorm1d else (30, 2, 5, 5)
    x, g = torch.full(shape, value), torch.randn(shape, generator=generator)
    w = torch.rand(30, generator=generator)
    (y, dx, variance), (_, dx64, _) = both(x, w, g, layer)
    # One rounding of x would show as 0.04 / √ε = 14 at 3.7e5.
    torch.testing.assert_close(y, torch.zeros_like(y), atol=1e-5, rtol=0)
    torch.testing.assert_close(dx, dx64, atol=20 * EPS32 * float(dx64.abs().max()), rtol=0)
    assert (variance >= 0).all()
    assert (variance <= EPS32 * value**2 * EPS32).all()
