"""A convolution with pooling after it as a matrix product: every map against torch, every transpose against its map."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from wrssl.fast.buffers import Buffers
from wrssl.fast.geometry import Geometry

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


def test_the_product_is_the_convolution(geometry):
    x, weight = (
        doubles(3, geometry.channels, geometry.height, geometry.width),
        doubles(geometry.out_channels, geometry.channels, *geometry.kernel, seed=1),
    )
    lease = Buffers().lease()
    planes = geometry.expand(weight) @ geometry.gather(x, lease)[0]
    down, right = geometry.pooled
    planes = planes.view(2, 2, geometry.out_channels, down, right, 3)  # dx, dy, ...
    expected = F.conv2d(x, weight, padding=geometry.padding)
    for dx in (0, 1):
        for dy in (0, 1):
            torch.testing.assert_close(
                planes[dx, dy].permute(3, 0, 1, 2), expected[:, :, dy::2, dx::2], atol=1e-12, rtol=0
            )


def test_gather_reads_any_strides(geometry):
    x = doubles(geometry.height, 4, geometry.width, geometry.channels)
    view = x.permute(1, 3, 0, 2)
    lease = Buffers().lease()
    assert torch.equal(geometry.gather(view, lease)[0], geometry.gather(view.contiguous(), lease)[0])


def test_the_mean_of_a_comes_from_the_mean_image(geometry):
    x = doubles(3, geometry.channels, geometry.height, geometry.width)
    a, image = geometry.gather(x, Buffers().lease())
    torch.testing.assert_close(geometry.box @ image.mean(-1).view(-1), a[:-1].mean(1), atol=1e-12, rtol=0)


def test_scatter_is_the_transpose_of_gather(geometry):
    """⟨gather x, a⟩ = ⟨x, scatter a⟩."""
    x = doubles(3, geometry.channels, geometry.height, geometry.width)
    gathered = geometry.gather(x, Buffers().lease())[0][:-1]
    a = doubles(*gathered.shape, seed=2)
    torch.testing.assert_close((gathered * a).sum(), (x * geometry.scatter(a, 3)).sum(), atol=1e-9, rtol=1e-12)


def test_fold_is_the_transpose_of_expand(geometry):
    weight = doubles(geometry.out_channels, geometry.channels, *geometry.kernel)
    wide = geometry.expand(weight)
    other = doubles(*wide.shape, seed=3)
    torch.testing.assert_close((wide * other).sum(), (weight * geometry.fold(other)).sum(), atol=1e-9, rtol=1e-12)


@pytest.mark.parametrize(("side", "fits"), [(28, True), (27, False), (4, False), (6, True)])
def test_only_even_outputs_fit(side, fits):
    assert Geometry(1, 2, (5, 5), (0, 0), side, side).fits is fits


def test_a_padded_image_keeps_its_border_of_zeros_when_memory_is_used_again():
    geometry, buffers = GEOMETRIES[0], Buffers()
    first = geometry.gather(doubles(2, 1, 28, 28), buffers.lease())[0].clone()
    again = geometry.gather(doubles(2, 1, 28, 28), buffers.lease())[0]
    assert torch.equal(first, again)


def test_a_lease_gives_back_at_its_end_and_not_before():
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
