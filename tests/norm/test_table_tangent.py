"""Forward mode of weighted batch norm on tables: the native function against the composed form."""

from __future__ import annotations

import pytest
import torch

import wrssl
from wrssl.hypergrad.forward import tangent
from wrssl.norm import use_native_kernels


@pytest.mark.parametrize("shape", [(7, 4), (7, 4, 1, 1)])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("what", ["x", "everything"])
def test_native_equals_composed(shape, affine, what):
    generator = torch.Generator().manual_seed(0)
    kind = wrssl.WeightedBatchNorm1d if len(shape) == 2 else wrssl.WeightedBatchNorm2d
    layer = kind(4, affine=affine).double()
    w = torch.rand(7, generator=generator, dtype=torch.float64)
    x = torch.randn(shape, generator=generator, dtype=torch.float64) * 3 + 5
    theta = torch.cat([x.reshape(-1), torch.randn(8, generator=generator, dtype=torch.float64)])
    direction = torch.randn(theta.shape, generator=generator, dtype=torch.float64)
    if what == "x":
        direction[x.numel() :] = 0

    def run(flat):
        names = {"weight": flat[-8:-4], "bias": flat[-4:]} if affine else {}
        with wrssl.sample_weights(layer, w):
            return torch.func.functional_call(layer, names, (flat[: x.numel()].view(shape),))

    values = []
    for native in (True, False):
        use_native_kernels(layer, native)
        values.append(tangent(run, theta, direction))
    assert values[0].shape == shape
    torch.testing.assert_close(*values, atol=1e-12, rtol=1e-10)
