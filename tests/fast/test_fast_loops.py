"""The compiled loops against torch's own operations."""

from __future__ import annotations

import pytest
import torch

from wrssl.fast import loops

Q, DOWN, RIGHT, N = 3, 2, 3, 5
POSITIONS = DOWN * RIGHT
M = POSITIONS * N
EPS = 1e-5


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def product(seed: int) -> torch.Tensor:
    """The product of a kernel and the windows, before anything is subtracted."""
    return doubles(DOWN, 4 * Q, RIGHT * N, seed=seed)


def planes(z: torch.Tensor) -> torch.Tensor:
    """(dy, dx) first, in the order in which max-pooling reads them, then channels and positions."""
    return z.view(DOWN, 2, 2, Q, -1).permute(2, 1, 3, 0, 4).reshape(4, Q, M)


def counted(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return rows * weight.repeat(POSITIONS)


WEIGHT = torch.tensor([0.2, 1.1, 0.0, 2.0, 1.7], dtype=torch.float64)


@pytest.mark.parametrize("given", [False, True])
def test_normalize_pool(given):
    z, mean, size, beta = product(1), doubles(Q, seed=2), doubles(Q, seed=3).abs(), doubles(Q, seed=4)
    variance = doubles(Q, seed=5).abs() if given else None
    top = torch.empty(Q, M).double()
    y, used, inverse = loops.normalize_pool(z, mean, WEIGHT, size, beta, EPS, variance, top)
    centred = planes(z) - mean[:, None]
    expected = variance if given else counted(centred.square(), WEIGHT).mean((0, 2))
    torch.testing.assert_close(used, expected, atol=1e-13, rtol=1e-12)
    torch.testing.assert_close(inverse, (expected + EPS).rsqrt(), atol=0, rtol=1e-12)
    torch.testing.assert_close(top, centred.amax(0), atol=1e-14, rtol=0)
    normalised = (size * inverse)[:, None] * centred.amax(0) + beta[:, None]
    torch.testing.assert_close(y, normalised.relu(), atol=1e-13, rtol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_normalize_pool_backward(ties):
    """The gradient of max-pooling goes to the first of the largest; every entry shares that of the statistics."""
    z, mean, grad, y = product(8), doubles(Q, seed=7), doubles(Q, M, seed=9), doubles(Q, M, seed=10)
    if ties:
        z = z.round()
        assert (planes(z).sort(0).values.diff(dim=0)[2] == 0).any()
    size, inverse = doubles(Q, seed=11).abs(), doubles(Q, seed=12).abs()
    centred, dz = planes(z) - mean[:, None], torch.empty_like(z)
    top = centred.amax(0)
    g1, g2 = loops.normalize_pool_backward(grad, y, z, mean, top, WEIGHT, size, inverse, dz)
    g = grad * (y > 0)
    torch.testing.assert_close(g1, g.sum(1), atol=1e-13, rtol=1e-12)
    torch.testing.assert_close(g2, (g * top).sum(1) * inverse, atol=1e-13, rtol=1e-12)
    image = planes(z).view(2, 2, Q, M).permute(2, 3, 0, 1).reshape(Q * M, 1, 2, 2).clone().requires_grad_()
    scale = (size * inverse)[:, None]
    (there,) = torch.autograd.grad(torch.nn.functional.max_pool2d(image, 2), image, (g * scale).reshape(-1, 1, 1, 1))
    common = scale * (g1[:, None] + (g2 * inverse)[:, None] * centred) / (4 * M)
    expected = there.view(Q, M, 4).permute(2, 0, 1) - counted(common, WEIGHT)
    torch.testing.assert_close(planes(dz), expected, atol=1e-13, rtol=1e-12)


def test_tangent_sums():
    z, mean, dz = product(14), doubles(Q, seed=13), product(15)
    first, second = loops.tangent_sums(z, mean, dz, WEIGHT)
    along = counted(planes(dz), WEIGHT)
    torch.testing.assert_close(first, along.sum((0, 2)), atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(second, (along * (planes(z) - mean[:, None])).sum((0, 2)), atol=1e-12, rtol=1e-12)


def test_normalize_pool_tangent():
    z, dz = product(16).round(), product(17)
    shift, scale, slope, level = (doubles(Q, seed=s)[:, None] for s in (18, 19, 20, 21))
    top, y = planes(z).amax(0), doubles(Q, M, seed=22)
    got = loops.normalize_pool_tangent(z, dz, *(t.view(-1) for t in (shift, scale, slope, level)), top, y)
    winner = torch.tensor(planes(z).numpy().argmax(0))  # the first of the largest
    tangent = planes(dz).gather(0, winner[None])[0]
    expected = (scale * (tangent - shift) + slope * top + level) * (y > 0)
    torch.testing.assert_close(got, expected, atol=1e-13, rtol=1e-12)


@pytest.mark.parametrize("name", ["normalize_pool", "normalize_pool_backward"])
def test_nan_stays_nan(name):
    """A run that has diverged must be seen to have diverged."""
    z, top, ones = product(1), doubles(Q, M, seed=2).abs(), torch.ones(Q).double()
    if name == "normalize_pool":
        z[0, 0, 3] = torch.nan
        y, variance, _ = loops.normalize_pool(z, ones, WEIGHT, ones, ones, EPS, None, top)
        assert y[0].isnan().all()
        assert variance[0].isnan()
    else:
        grad, dz = doubles(Q, M, seed=3), torch.empty_like(z)
        grad[0, 3] = torch.nan
        assert loops.normalize_pool_backward(grad, top, z, ones, top, WEIGHT, ones, ones, dz)[0][0].isnan()
        assert planes(dz)[:, 0, 0].isnan().all()
