"""Statistics of a batch whose rows are spread over processes; here these are threads that wait for each other."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from wrssl.norm import Part, Source, WeightedBatchNorm1d, WeightedBatchNorm2d, statistics

ROWS = [slice(0, 3), slice(3, 7)]


class Exchange:
    """Sums over two threads."""

    def __init__(self) -> None:
        self.barrier, self.values = Barrier(2), [torch.empty(0), torch.empty(0)]

    def total(self, rank: int, x: torch.Tensor) -> torch.Tensor:
        self.values[rank] = x
        self.barrier.wait(20)
        result = self.values[0] + self.values[1]
        self.barrier.wait(20)
        return result


class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, exchange, rank):
        ctx.where = exchange, rank
        return exchange.total(rank, x.detach())

    @staticmethod
    def backward(ctx, grad):
        exchange, rank = ctx.where
        return exchange.total(rank, grad), None, None


@pytest.mark.parametrize("shape", [(7, 3), (7, 3, 4, 2)])
@pytest.mark.parametrize("source", [Source.BATCH, Source.WEIGHTED])
@pytest.mark.parametrize("useless", [False, True])
def test_two_parts_equal_the_whole(shape, source, useless, generator):
    kind = WeightedBatchNorm1d if len(shape) == 2 else WeightedBatchNorm2d
    layer = kind(3).double()
    with torch.no_grad():
        layer.weight.copy_(torch.rand(3, generator=generator) + 0.5)
        layer.running_mean.copy_(torch.rand(3, generator=generator))
    copies = [copy.deepcopy(layer) for _ in range(2)]
    x = 3 * torch.randn(shape, generator=generator, dtype=torch.float64) + 5
    g = torch.randn(shape, generator=generator, dtype=torch.float64)
    w = torch.rand(7, generator=generator, dtype=torch.float64) * (0 if useless else 1)

    def run(layer, x, g, part):
        x = x.clone().requires_grad_()
        with statistics([layer], source, True, w if source is Source.WEIGHTED else None, part=part):
            y = layer(x)
        y.backward(g)
        return y.detach(), x.grad, layer.weight.grad, layer.bias.grad

    whole = run(layer, x, g, None)
    exchange = Exchange()

    def process(rank):
        part = Part(ROWS[rank], 7, lambda t: Add.apply(t, exchange, rank))
        return run(copies[rank], x[ROWS[rank]], g[ROWS[rank]], part)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(process, range(2))
    for a, b, c in zip(whole[:2], first[:2], second[:2], strict=True):
        torch.testing.assert_close(torch.cat([b, c]), a, atol=1e-12, rtol=1e-12)
    for a, b, c in zip(whole[2:], first[2:], second[2:], strict=True):  # parameters: a sum over the processes
        torch.testing.assert_close(b + c, a, atol=1e-12, rtol=1e-12)
    for name, value in layer.named_buffers():
        for other in copies:
            torch.testing.assert_close(other.get_buffer(name), value, atol=1e-12, rtol=1e-12)
