"""Weighted batch norm against torch's own layers: the identities that define it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from wrssl.norm import WeightedBatchNorm1d, WeightedBatchNorm2d, WeightedBatchNorm3d, sample_weights, weighted_moments

pytestmark = pytest.mark.usefixtures("kernels")

PAIRS = {
    "1d": (WeightedBatchNorm1d, nn.BatchNorm1d, (12, 5)),
    "1d-sequence": (WeightedBatchNorm1d, nn.BatchNorm1d, (12, 5, 7)),
    "2d": (WeightedBatchNorm2d, nn.BatchNorm2d, (12, 5, 4, 3)),
    "3d": (WeightedBatchNorm3d, nn.BatchNorm3d, (12, 5, 2, 3, 4)),
}
OPTIONS = [
    {},
    {"momentum": None},
    {"affine": False},
    {"track_running_stats": False},
    {"momentum": 0.3, "eps": 1e-3},
]


@pytest.fixture(params=PAIRS)
def pair(request):
    return PAIRS[request.param]


def randn(*shape, generator, dtype=torch.float64):
    return torch.randn(*shape, generator=generator, dtype=dtype)


def same_parameters(a, b, generator):
    if a.affine:
        with torch.no_grad():
            for layer in (a, b):
                layer.weight.copy_(torch.linspace(0.5, 2, 5))
                layer.bias.copy_(torch.linspace(-1, 1, 5))


def buffers_equal(a, b, atol=1e-12):
    mine, theirs = dict(a.named_buffers()), dict(b.named_buffers())
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        torch.testing.assert_close(value, theirs[name], atol=atol, rtol=0)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_ones_equal_batch_norm_in_output_gradients_and_buffers(pair, options, generator):
    weighted, plain, shape = pair
    a, b = weighted(5, **options).double(), plain(5, **options).double()
    same_parameters(a, b, generator)
    for _ in range(3):  # several batches, so that momentum and the cumulative average show
        x = randn(*shape, generator=generator)
        g = randn(*shape, generator=generator)
        xa, xb = x.clone().requires_grad_(), x.clone().requires_grad_()
        with sample_weights(a, torch.ones(12, dtype=torch.float64)):
            ya = a(xa)
        yb = b(xb)
        torch.testing.assert_close(ya, yb, atol=1e-12, rtol=0)
        inputs_a, inputs_b = [xa, *a.parameters()], [xb, *b.parameters()]
        for ga, gb in zip(torch.autograd.grad(ya, inputs_a, g), torch.autograd.grad(yb, inputs_b, g), strict=True):
            torch.testing.assert_close(ga, gb, atol=1e-11, rtol=0)
        buffers_equal(a, b)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_without_weights_and_in_evaluation_it_is_torch_s_layer(pair, options, generator):
    weighted, plain, shape = pair
    a, b = weighted(5, **options).double(), plain(5, **options).double()
    x = randn(*shape, generator=generator)
    torch.testing.assert_close(a(x), b(x), atol=0, rtol=0)
    buffers_equal(a, b, atol=0)
    a.eval(), b.eval()
    torch.testing.assert_close(a(x), b(x), atol=0, rtol=0)


def test_perfect_weights_equal_batch_norm_of_the_id_part_and_plain_batch_norm_does_not(pair, generator):
    weighted, plain, shape = pair
    x = randn(*shape, generator=generator)
    far = x.clone()
    far[7:] += 1e3
    w = torch.tensor([1.0] * 7 + [0.0] * 5, dtype=torch.float64)
    a, b, polluted = weighted(5).double(), plain(5).double(), plain(5).double()
    with sample_weights(a, w):
        ya = a(far)
    yb = b(x[:7])
    torch.testing.assert_close(ya[:7], yb, atol=1e-10, rtol=0)  # Proposition 3
    buffers_equal(a, b, atol=1e-10)
    # Proposition 1: the mean of the mixed batch is off by the share of the far part, and the output with it.
    distance = (polluted(far)[:7] - yb).abs().max()
    assert distance > 0.1
    shift = (polluted.running_mean - b.running_mean) / 0.1
    torch.testing.assert_close(shift, torch.full_like(shift, 1e3 * 5 / 12), atol=2.0, rtol=0)


def test_perfect_weights_stop_gradients_from_the_ood_part_into_the_id_part(pair, generator):
    weighted, _, shape = pair
    x = randn(*shape, generator=generator).requires_grad_()
    w = torch.tensor([1.0] * 7 + [0.0] * 5, dtype=torch.float64)
    layer = weighted(5).double()
    with sample_weights(layer, w):
        y = layer(x)
    (g,) = torch.autograd.grad(y[:7].square().sum(), x)
    assert torch.equal(g[7:], torch.zeros_like(g[7:]))


def test_statistics_do_not_depend_on_the_scale_of_the_weights(pair, generator):
    weighted, _, shape = pair
    x = randn(*shape, generator=generator)
    w = torch.rand(12, generator=generator, dtype=torch.float64)
    a, b = weighted(5).double(), weighted(5).double()
    with sample_weights(a, w), sample_weights(b, 0.01 * w):
        torch.testing.assert_close(a(x), b(x), atol=1e-12, rtol=0)
    buffers_equal(a, b)


def test_integer_weights_equal_repeated_examples(pair, generator):
    """Weight 2 is the example twice: the moments by an independent computation."""
    _, _, shape = pair
    x = randn(*shape, generator=generator)
    w = torch.tensor([2.0, 1.0, 0.0, 3.0] * 3, dtype=torch.float64)
    repeated = x.repeat_interleave(w.long(), 0).transpose(0, 1).reshape(5, -1)
    mean, variance = weighted_moments(x, w)
    torch.testing.assert_close(mean, repeated.mean(1), atol=1e-12, rtol=0)
    torch.testing.assert_close(variance, repeated.var(1, unbiased=False), atol=1e-12, rtol=0)


def test_hand_computed_values():
    """x = 0, 4, 8 with w = 1, 1, ½: mean 3.2, variance Σw(x−μ)²/Σw = 8.96, n = 2.5²/2.25."""
    x, w = torch.tensor([[0.0], [4.0], [8.0]], dtype=torch.float64), torch.tensor([1.0, 1.0, 0.5], dtype=torch.float64)
    layer = WeightedBatchNorm1d(1, eps=0.0, momentum=1.0).double()
    with sample_weights(layer, w):
        y = layer(x)
    torch.testing.assert_close(y.flatten(), (x.flatten() - 3.2) / 8.96**0.5, atol=1e-12, rtol=0)
    assert layer.running_mean.item() == pytest.approx(3.2, abs=1e-12)
    n = 2.5**2 / 2.25
    assert layer.running_var.item() == pytest.approx(8.96 * n / (n - 1), abs=1e-12)


def test_first_and_second_derivatives(pair, generator):
    weighted, _, shape = pair
    layer = weighted(2).double()
    shape = (5, 2, *(2 for _ in shape[2:]))
    w = torch.rand(5, generator=generator, dtype=torch.float64) + 0.1

    def f(x, w, gamma, beta):
        with sample_weights(layer, w, differentiable=True):
            return torch.func.functional_call(layer, {"weight": gamma, "bias": beta}, (x,))

    layer.running_mean, layer.running_var = layer.running_mean.clone(), layer.running_var.clone()
    x = randn(*shape, generator=generator).requires_grad_()
    gamma = randn(2, generator=generator).requires_grad_()
    beta = randn(2, generator=generator).requires_grad_()
    w.requires_grad_()
    assert torch.autograd.gradcheck(f, (x, w, gamma, beta))
    assert torch.autograd.gradgradcheck(f, (x, w, gamma, beta))


def test_weights_are_constants_by_default(generator):
    layer = WeightedBatchNorm1d(3)
    w = torch.rand(6, generator=generator, requires_grad=True)
    x = torch.randn(6, 3, generator=generator, requires_grad=True)
    with sample_weights(layer, w):
        layer(x).square().sum().backward()
    assert w.grad is None
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
