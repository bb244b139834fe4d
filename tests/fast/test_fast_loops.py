"""The compiled loops and the tensor operations do the same, and what their names say."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch

from wrssl.fast import compiled, tensors

Q, POSITIONS, N = 3, 6, 5
M = POSITIONS * N


@pytest.fixture(params=[compiled, tensors], ids=["compiled", "tensors"])
def loops(request):
    return request.param


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def planes(z: torch.Tensor) -> torch.Tensor:
    """(dy, dx) first, in the order in which max-pooling looks at them."""
    return z.view(2, 2, Q, M).transpose(0, 1).reshape(4, Q, M)


def test_peak(loops):
    z, weight, top = doubles(4 * Q, M, seed=1), torch.rand(N, dtype=torch.float64), torch.empty(Q, M).double()
    squares = loops.peak(z, weight, top)
    assert torch.equal(top, planes(z).amax(0))
    expected = (planes(z).square().view(4, Q, POSITIONS, N) * weight).sum((0, 2, 3))
    torch.testing.assert_close(squares, expected, atol=1e-12, rtol=1e-12)


def test_rectified(loops):
    top, slope, level = doubles(Q, M, seed=2), doubles(Q, seed=3), doubles(Q, seed=4)
    expected = (top * slope[:, None] + level[:, None]).relu()
    torch.testing.assert_close(loops.rectified(top, slope, level), expected, atol=1e-14, rtol=0)


def test_sums(loops):
    grad, y, top = (doubles(Q, M, seed=s) for s in (5, 6, 7))
    g1, g2 = loops.sums(grad, y, top)
    g = grad * (y > 0)
    torch.testing.assert_close(g1, g.sum(1), atol=1e-13, rtol=1e-12)
    torch.testing.assert_close(g2, (g * top).sum(1), atol=1e-13, rtol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_placed(loops, ties):
    """The gradient of max-pooling goes to the first of the largest; every entry pays its share of the statistics."""
    z, grad, y = doubles(4 * Q, M, seed=8), doubles(Q, M, seed=9), doubles(Q, M, seed=10)
    if ties:
        z = z.round()
        assert (planes(z).sort(0).values.diff(dim=0)[2] == 0).any()
    weight = torch.rand(N, dtype=torch.float64)
    scale, slope, level = (doubles(Q, seed=s) for s in (11, 12, 13))
    dz = torch.empty_like(z)
    loops.placed(grad, y, z, weight, scale, slope, level, dz)
    image = planes(z).view(2, 2, Q, M).permute(2, 3, 0, 1).reshape(Q * M, 1, 2, 2).clone().requires_grad_()
    pooled = torch.nn.functional.max_pool2d(image, 2)
    (expected,) = torch.autograd.grad(pooled, image, (grad * (y > 0) * scale[:, None]).reshape(-1, 1, 1, 1))
    expected = expected.view(Q, M, 4).permute(2, 0, 1)
    counted = weight.repeat(POSITIONS)
    expected = expected - counted * (slope[:, None] * planes(z) + level[:, None])
    torch.testing.assert_close(planes(dz), expected, atol=1e-13, rtol=1e-12)


def test_slopes(loops):
    z, dz, weight = doubles(4 * Q, M, seed=14), doubles(4 * Q, M, seed=15), torch.rand(N, dtype=torch.float64)
    first, second = loops.slopes(z, dz, weight)
    counted = planes(dz) * weight.repeat(POSITIONS)
    torch.testing.assert_close(first, counted.sum((0, 2)), atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(second, (counted * planes(z)).sum((0, 2)), atol=1e-12, rtol=1e-12)


def test_followed(loops):
    z, dz = doubles(4 * Q, M, seed=16).round(), doubles(4 * Q, M, seed=17)
    shift, scale, slope, level = (doubles(Q, seed=s)[:, None] for s in (18, 19, 20, 21))
    top, y = planes(z).amax(0), doubles(Q, M, seed=22)
    got = loops.followed(z, dz, *(t.view(-1) for t in (shift, scale, slope, level)), top, y)
    winner = torch.tensor(planes(z).numpy().argmax(0))  # the first of the largest
    tangent = planes(dz).gather(0, winner[None])[0]
    expected = (scale * (tangent - shift) + slope * top + level) * (y > 0)
    torch.testing.assert_close(got, expected, atol=1e-13, rtol=1e-12)


@pytest.mark.parametrize("name", ["peak", "rectified", "sums"])
def test_not_a_number_stays_not_a_number(loops, name):
    """A run that has gone wrong must be seen to have gone wrong."""
    z, top, ones = doubles(4 * Q, M, seed=1), doubles(Q, M, seed=2), torch.ones(Q).double()
    if name == "peak":
        z[0, 3] = torch.nan
        assert loops.peak(z, torch.ones(N).double(), top)[0].isnan()
    elif name == "rectified":
        top[0, 3] = torch.nan
        assert loops.rectified(top, ones, ones)[0, 3].isnan()
    else:
        grad = doubles(Q, M, seed=3)
        grad[0, 3] = torch.nan
        assert loops.sums(grad, top.abs(), top)[0][0].isnan()


@pytest.mark.parametrize("how", ["switch", "missing"])
def test_without_numba_tensor_operations_run(how, monkeypatch):
    choice = importlib.import_module("wrssl.fast.loops")
    choice.loops.cache_clear()
    if how == "switch":
        monkeypatch.setenv(choice.SWITCH, "0")
    else:
        monkeypatch.setitem(sys.modules, "wrssl.fast.compiled", None)
    try:
        assert choice.loops() is tensors
    finally:
        choice.loops.cache_clear()
