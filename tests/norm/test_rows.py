"""Row sums, row maps and channel products against einsum, for rows shorter and longer than a vector register."""

from __future__ import annotations

import pytest
import torch

from wrssl.norm.native import channel_products, row_affine, row_sums

SHAPES = [(3, 4), (3, 4, 1), (3, 4, 7), (3, 4, 8), (1, 1, 9), (5, 3, 4, 4), (2, 3, 5, 5), (2, 2, 3, 3, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_and_channels(shape, generator):
    x, g = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    rows, gradient = x.reshape(*shape[:2], -1), g.reshape(*shape[:2], -1)
    scale, shift = (torch.randn(shape[:2], generator=generator, dtype=torch.float64) for _ in range(2))
    mean, invstd = (torch.rand(shape[1], generator=generator, dtype=torch.float64) for _ in range(2))
    squares, sums = row_sums(x)
    products, totals = channel_products(g, x, mean, invstd)
    expected = torch.einsum("ncs,nc->ncs", rows, scale) + shift.unsqueeze(2)
    hat = (rows - mean.unsqueeze(1)) * invstd.unsqueeze(1)
    for value, truth in (
        (squares, torch.einsum("ncs,ncs->nc", rows, rows)),
        (sums, torch.einsum("ncs->nc", rows)),
        (products, torch.einsum("ncs,ncs->c", gradient, hat)),
        (totals, torch.einsum("ncs->c", gradient)),
        (row_affine(x, scale, shift), expected.reshape(shape)),
    ):
        torch.testing.assert_close(value, truth, atol=1e-12, rtol=0)
