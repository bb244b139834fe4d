"""The native form against the composed one, in float64: values, gradients and buffers are the same numbers."""

from __future__ import annotations

import copy

import pytest
import torch

from wrssl.norm import (
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
    sample_weights,
    use_native_kernels,
)

LAYERS = {2: WeightedBatchNorm1d, 3: WeightedBatchNorm1d, 4: WeightedBatchNorm2d, 5: WeightedBatchNorm3d}
SHAPES = [
    (12, 5),
    (12, 1),
    (1, 4, 6, 6),
    (12, 5, 7),  # rows shorter than a vector register
    (12, 5, 8),
    (12, 1, 1, 1),
    (12, 3, 10, 9),
    (2, 33, 5, 5),
    (12, 5, 2, 3, 4),
]
WEIGHTS = {
    "random": lambda n, generator: torch.rand(n, generator=generator, dtype=torch.float64),
    "ones": lambda n, generator: torch.ones(n, dtype=torch.float64),
    "zero-one": lambda n, generator: (torch.arange(n) % 3 != 1).double(),
    "one-only": lambda n, generator: (torch.arange(n) == n - 1).double(),
    "zeros": lambda n, generator: torch.zeros(n, dtype=torch.float64),
    "tiny": lambda n, generator: torch.full((n,), 1e-6, dtype=torch.float64),
    "large": lambda n, generator: 1e6 * torch.rand(n, generator=generator, dtype=torch.float64),
    "float32": lambda n, generator: torch.rand(n, generator=generator),
    "integer": lambda n, generator: torch.arange(n) % 4,
    "bool": lambda n, generator: torch.arange(n) % 3 != 1,
}
OPTIONS = [{}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}, {"momentum": 0.7, "eps": 1e-3}]


def pass_of(layer, x, w, g, native):
    """Output, gradients of input and parameters, buffers."""
    layer, x = copy.deepcopy(layer), x.clone().requires_grad_()
    use_native_kernels(layer, native)
    with sample_weights(layer, w):
        y = layer(x)
    gradients = torch.autograd.grad(y, [x, *layer.parameters()], g)
    return y, gradients, dict(layer.named_buffers())


def random_layer(shape, generator, **options):
    layer = LAYERS[len(shape)](shape[1], **options).double()
    for tensor in (*layer.parameters(), layer.running_mean, layer.running_var):
        if tensor is not None:
            tensor.data.copy_(torch.rand(shape[1], generator=generator, dtype=torch.float64) + 0.5)
    return layer


def assert_same(native, composed, atol=1e-12):
    """Equal up to ``atol`` times the size of the numbers."""
    for a, b in zip(native, composed, strict=True):
        torch.testing.assert_close(a, b, atol=atol * max(1.0, float(b.detach().abs().max())), rtol=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_same_numbers(shape, weights, options, generator):
    layer = random_layer(shape, generator, **options)
    w = WEIGHTS[weights](shape[0], generator)
    x = 3 + 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    g = torch.randn(shape, generator=generator, dtype=torch.float64)
    (y, dy, buffers), (z, dz, expected) = (pass_of(layer, x, w, g, native) for native in (True, False))
    assert_same([y, *dy, *buffers.values()], [z, *dz, *expected.values()])


@pytest.mark.parametrize("shape", [(12, 5), (12, 5, 1, 1), (12, 5, 3, 3)], ids=str)
def test_the_same_numbers_without_a_graph(shape, generator):
    layer, w = random_layer(shape, generator), torch.rand(12, generator=generator, dtype=torch.float64)
    x = 3 + 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    results = []
    for native in (True, False):
        twin = copy.deepcopy(layer)
        use_native_kernels(twin, native)
        with torch.no_grad(), sample_weights(twin, w):
            results.append([twin(x), *twin.buffers()])
    assert results[0][0].shape == shape
    assert_same(*results)


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_faraway_examples_without_weight_change_nothing(far, generator):
    layer, w = random_layer((12, 3, 4, 4), generator), (torch.arange(12) < 7).double()
    x = torch.randn(12, 3, 4, 4, generator=generator, dtype=torch.float64)
    g = torch.randn(12, 3, 4, 4, generator=generator, dtype=torch.float64)
    g[7:] = 0
    moved = x.clone()
    moved[7:] += far
    near, away = (pass_of(layer, values, w, g, native=True) for values in (x, moved))
    assert torch.equal(near[0][:7], away[0][:7])
    assert torch.equal(near[1][0][:7], away[1][0][:7])
    for name, buffer in near[2].items():
        assert torch.equal(buffer, away[2][name])


def test_the_gradient_is_the_formula(generator):
    """dL/dx = A g − ω A (G1 + G2 x̂), written out with NumPy's sums."""
    layer, w = random_layer((6, 2, 3, 3), generator), torch.rand(6, generator=generator, dtype=torch.float64)
    x = torch.randn(6, 2, 3, 3, generator=generator, dtype=torch.float64)
    g = torch.randn(6, 2, 3, 3, generator=generator, dtype=torch.float64)
    _, (dx, dgamma, dbeta), _ = pass_of(layer, x, w, g, native=True)
    X, G, omega = x.numpy(), g.numpy(), (w / (9 * w.sum())).numpy()[:, None, None]
    for c in range(2):
        mean = (omega * X[:, c]).sum()
        std = ((omega * (X[:, c] - mean) ** 2).sum() + layer.eps) ** 0.5
        hat = (X[:, c] - mean) / std
        G1, G2 = G[:, c].sum(), (G[:, c] * hat).sum()
        expected = layer.weight[c].item() / std * (G[:, c] - omega * (G1 + G2 * hat))
        torch.testing.assert_close(dx[:, c], torch.from_numpy(expected), atol=1e-12, rtol=0)
        assert (float(dgamma[c]), float(dbeta[c])) == pytest.approx((G2, G1), abs=1e-12)


@pytest.mark.parametrize("needed", [("x",), ("weight",), ("bias",), ("x", "bias"), ("x", "weight", "bias")], ids=str)
def test_only_what_requires_a_gradient_gets_one(needed, generator):
    layer, w = random_layer((6, 2, 3, 3), generator), torch.rand(6, generator=generator, dtype=torch.float64)
    x = torch.randn(6, 2, 3, 3, generator=generator, dtype=torch.float64)
    g = torch.randn(6, 2, 3, 3, generator=generator, dtype=torch.float64)
    _, expected, _ = pass_of(layer, x, w, g, native=False)
    tensors = {"x": x, "weight": layer.weight, "bias": layer.bias}
    for name, tensor in tensors.items():
        tensor.requires_grad_(name in needed)
    with sample_weights(layer, w):
        layer(x).backward(g)
    for (name, tensor), gradient in zip(tensors.items(), expected, strict=True):
        assert (tensor.grad is not None) == (name in needed)
        if tensor.grad is not None:
            torch.testing.assert_close(tensor.grad, gradient, atol=1e-12, rtol=0)


@pytest.mark.usefixtures("kernels")
def test_weights_are_read_when_the_context_is_made(generator):
    layer, x = random_layer((6, 2), generator), torch.randn(6, 2, generator=generator, dtype=torch.float64)
    w = torch.rand(6, generator=generator, dtype=torch.float64)
    with sample_weights(layer, w):
        before = layer(x)
        w.zero_()
        torch.testing.assert_close(layer(x), before, atol=0, rtol=0)
