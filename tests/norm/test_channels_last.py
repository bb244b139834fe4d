"""Images whose channels lie innermost in memory: the numbers of the composed form, in every mode, and in that order."""

from __future__ import annotations

import copy

import pytest
import torch

from wrssl.hypergrad.forward import tangent
from wrssl.norm import WeightedBatchNorm2d, native, sample_weights, use_native_kernels
from wrssl.norm.moments import moments

LAST = torch.channels_last
# One channel more than a wide row has room for, positions that two and that no number divides, the usual ones.
SHAPES = [(5, 2, 4, 4), (5, 3, 2, 3), (5, 4, 5, 5), (3, 16, 8, 8), (3, 129, 2, 2), (1, 4, 6, 6)]


def make(shape, generator, **options):
    layer = WeightedBatchNorm2d(shape[1], **options).double()
    for p in (*layer.parameters(), layer.running_mean, layer.running_var):
        p.data.copy_(torch.rand(shape[1], generator=generator, dtype=torch.float64) + 0.5)
    values = [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2)]
    x, g = (v.contiguous(memory_format=LAST) for v in (3 + 2 * values[0], values[1]))
    return layer, x, g, torch.rand(shape[0], generator=generator, dtype=torch.float64)


@pytest.fixture(params=["table", "many threads"])
def way(request, monkeypatch):
    """The two ways in which such a batch can be normalized."""
    if request.param == "many threads":
        monkeypatch.setattr(torch, "get_num_threads", lambda: native._ONE_CORE_IS_ENOUGH + 1)
    return request.param


def close(a, b, atol=1e-12):
    torch.testing.assert_close(a, b, atol=atol * max(1.0, float(b.detach().abs().max())), rtol=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("options", [{}, {"affine": False}, {"momentum": None}], ids=str)
def test_the_same_numbers(shape, options, way, generator):
    layer, x, g, w = make(shape, generator, **options)
    results = []
    for fast in (True, False):
        twin, own = copy.deepcopy(layer), x.detach().requires_grad_()
        use_native_kernels(twin, fast)
        with sample_weights(twin, w):
            y = twin(own)
        results.append([y, *torch.autograd.grad(y, [own, *twin.parameters()], g), *twin.buffers()])
    for a, b in zip(*results, strict=True):
        close(a, b)
    y, dx = results[0][:2]
    assert y.is_contiguous(memory_format=LAST)
    assert way == "many threads" or dx.is_contiguous(memory_format=LAST)


@pytest.mark.parametrize(("threads", "function"), [(1, "TableNorm"), (2, "TableNorm"), (3, "_Native"), (8, "_Native")])
def test_torch_s_kernels_share_the_work_of_more_than_two_threads(threads, function, generator, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    layer, x, _, w = make((3, 4, 2, 2), generator)
    with sample_weights(layer, w):
        nodes = [layer(x).grad_fn]
    for node in nodes:
        nodes += [parent for parent, _ in node.next_functions if parent is not None]
    names = " ".join(node.name() for node in nodes)
    assert function in names
    assert ("TableNorm" in names) + ("_Native" in names) == 1


def test_weights_of_zero_and_no_graph(way, generator):
    layer, x, _, _ = make((6, 3, 4, 4), generator)
    for w in (torch.tensor([1.0, 0, 1, 0, 0, 1]), torch.zeros(6)):  # the second makes no statistic
        results = []
        for fast in (True, False):
            use_native_kernels(layer, fast)
            with torch.no_grad(), sample_weights(layer, w):
                results.append(copy.deepcopy(layer)(x))
        close(*results)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_along_a_tangent(shape, way, generator):
    layer, x, g, w = make(shape, generator)
    parameters = torch.rand(2 * shape[1], generator=generator, dtype=torch.float64)
    theta = torch.cat([x.permute(0, 2, 3, 1).flatten(), parameters])
    direction = torch.cat([g.flatten(), parameters.flip(0)])

    def run(flat):
        images, gamma, beta = flat.split([x.numel(), shape[1], shape[1]])
        n, c, height, width = shape
        with sample_weights(layer, w):
            images = images.view(n, height, width, c).permute(0, 3, 1, 2)
            return torch.func.functional_call(layer, {"weight": gamma, "bias": beta}, (images,))

    values = []
    for fast in (True, False):
        use_native_kernels(layer, fast)
        values.append(tangent(run, theta, direction))
    torch.testing.assert_close(*values, atol=1e-11, rtol=1e-9)


def test_derivatives_of_the_gradient(way, generator):
    layer, x, g, w = make((4, 2, 2, 2), generator)

    def run(x, gamma, beta):
        with sample_weights(layer, w):
            return torch.func.functional_call(layer, {"weight": gamma, "bias": beta}, (x,))

    inputs = [t.detach().requires_grad_() for t in (x, layer.weight, layer.bias)]
    assert torch.autograd.gradgradcheck(run, inputs, g)


@pytest.mark.parametrize("far", [0.0, 1e3])
def test_long_tables_in_single_precision(far, generator):
    """A hundred images of 32 x 32 positions: sums of 102,400 numbers keep their digits, also far from zero."""
    layer = WeightedBatchNorm2d(3)
    x = (far + torch.randn(100, 3, 32, 32, generator=generator)).contiguous(memory_format=LAST)
    w = torch.rand(100, generator=generator)
    with sample_weights(layer, w):
        y = layer(x)
    mean, variance = moments(x.double(), w.double() / w.double().sum())
    shape = (1, -1, 1, 1)
    expected = (x.double() - mean.view(shape)) / (variance + layer.eps).sqrt().view(shape)
    torch.testing.assert_close(y.double(), expected, atol=2e-5, rtol=0)
    torch.testing.assert_close(layer.running_mean.double(), 0.1 * mean, atol=2e-6 * max(1.0, 0.1 * far), rtol=0)
