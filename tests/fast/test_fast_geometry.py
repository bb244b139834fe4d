"""A convolution with pooling after it as a matrix product: every map against torch, every transpose against its map."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from wrssl.fast import loops
from wrssl.fast.geometry import Buffers, Geometry

GEOMETRIES = [
    Geometry(1, 6, (5, 5), (2, 2), 28, 28),
    Geometry(6, 16, (5, 5), (0, 0), 14, 14),
    Geometry(3, 4, (3, 3), (1, 1), 8, 10),
    Geometry(2, 3, (4, 4), (0, 0), 9, 9),
    Geometry(2, 3, (1, 3), (0, 1), 6, 4),
    Geometry(3, 2, (2, 5), (1, 0), 7, 8),
]


def doubles(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture(params=GEOMETRIES, ids=lambda g: f"{g.channels}-{g.out_channels}-k{g.kernel}-p{g.padding}")
def geometry(request):
    assert request.param.fits
    return request.param


WEIGHT = torch.tensor([0.3, 1.0, 1.7], dtype=torch.float64)


def gather(geometry, x, average=None):
    """All A_y, (down, inputs, right·N), and the mean of the product."""
    image = geometry.image(x, Buffers().lease())
    a = torch.full((*geometry.line, len(x)), torch.nan, dtype=x.dtype)
    average = doubles(2, geometry.inputs) if average is None else average
    mean = loops.gather(geometry, image, WEIGHT[: len(x)], a, average)
    return geometry.windows(a), mean


def test_the_product_is_the_convolution(geometry):
    x = doubles(3, geometry.channels, geometry.height, geometry.width)
    weight = doubles(geometry.out_channels, geometry.channels, *geometry.kernel, seed=1)
    down, right = geometry.pooled
    planes = geometry.expand(weight) @ gather(geometry, x)[0]
    planes = planes.view(down, 2, 2, geometry.out_channels, right, 3)  # y, dx, dy, ...
    expected = F.conv2d(x, weight, padding=geometry.padding)
    for dx in (0, 1):
        for dy in (0, 1):
            torch.testing.assert_close(
                planes[:, dx, dy].permute(3, 1, 0, 2), expected[:, :, dy::2, dx::2], atol=1e-12, rtol=0
            )


def test_images_of_any_strides(geometry):
    x = doubles(geometry.height, 4, geometry.width, geometry.channels).permute(1, 3, 0, 2)
    lease = Buffers().lease()
    assert torch.equal(geometry.image(x, lease), geometry.image(x.contiguous(), lease))
    assert torch.equal(geometry.crop(geometry.image(x, lease)), x)


def test_gather_also_gives_the_weighted_mean_of_the_product(geometry):
    average = doubles(4, geometry.inputs, seed=5)
    x = doubles(3, geometry.channels, geometry.height, geometry.width)
    windows, mean = gather(geometry, x, average)
    expected = ((average @ windows).unflatten(2, (-1, 3)) * WEIGHT).mean((0, 2, 3))
    torch.testing.assert_close(mean, expected, atol=1e-13, rtol=1e-12)


def test_scatter_is_the_transpose_of_gather(geometry):
    """⟨gather x, a⟩ = ⟨x, scatter a⟩."""
    x = doubles(3, geometry.channels, geometry.height, geometry.width)
    gathered = gather(geometry, x)[0]
    a = doubles(*gathered.shape, seed=2)
    back = geometry.crop(loops.scatter(geometry, a, 3))
    assert back.shape == x.shape
    torch.testing.assert_close((gathered * a).sum(), (x * back).sum(), atol=1e-9, rtol=1e-12)


def test_fold_is_the_transpose_of_expand(geometry):
    weight = doubles(geometry.out_channels, geometry.channels, *geometry.kernel)
    wide = geometry.expand(weight)
    other = doubles(*wide.shape, seed=3)
    torch.testing.assert_close((wide * other).sum(), (weight * geometry.fold(other)).sum(), atol=1e-9, rtol=1e-12)


@pytest.mark.parametrize(("side", "fits"), [(28, True), (27, False), (4, False), (6, True)])
def test_only_even_outputs_fit(side, fits):
    assert Geometry(1, 2, (5, 5), (0, 0), side, side).fits is fits


def test_a_padded_image_keeps_its_border_of_zeros_when_memory_is_reused():
    geometry, buffers = GEOMETRIES[0], Buffers()
    lease = buffers.lease()
    first = geometry.image(doubles(2, 1, 28, 28), lease).clone()
    del lease
    assert torch.equal(first, geometry.image(doubles(2, 1, 28, 28), buffers.lease()))
    assert float(first[:, 0].abs().max()) == 0


def test_a_lease_returns_its_tensors_when_it_is_deleted_and_not_before():
    buffers, like = Buffers(), torch.zeros(1)
    lease = buffers.lease()
    first, second = lease.take(like, 3, 4), lease.take(like, 3, 4)
    assert first.data_ptr() != second.data_ptr()
    assert not any(buffers.free.values())
    known = {first.data_ptr(), second.data_ptr()}
    del lease
    assert buffers.lease().take(like, 3, 4).data_ptr() in known
    assert buffers.lease().take(like, 4, 3).data_ptr() not in known
    assert buffers.lease().take(like.double(), 3, 4).dtype is torch.float64
