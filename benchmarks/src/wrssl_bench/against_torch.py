"""Against plain PyTorch: weighted batch norm over torch's, a loop without this library over ours, imports, the help.

The loop computes what ``method="vat", weights="none", bn="batch"`` computes: VAT as in its paper, one pass after the
other, plain autograd, with the same model, batch size, ε, ξ, λ and learning rate. The ratio says what the library's own
code is worth.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from wrssl.data import Scenario
from wrssl.models import build_model
from wrssl.norm import WeightedBatchNorm2d, sample_weights
from wrssl_bench.steps import SEED, images, make_trainer, stepper
from wrssl_bench.timing import (
    Action,
    Effort,
    Figure,
    Pairs,
    geometric_mean,
    interleave,
    output_of,
    quartile_range,
    summary,
)

SHAPES = ((6, 28, 28), (16, 10, 10), (32, 32, 32), (64, 16, 16))  # (C, H, W): LeNet's two, and two of a residual net
EPS, XI, COEF, RATE = 3.0, 0.1, 0.3, 3e-3
OURS = "import wrssl; wrssl.WeightedBatchNorm2d"  # names are loaded when they are first used, so one is used
TORCH = "import torch"


def weighted_over_torch(effort: Effort) -> Figure:
    """The geometric mean over the shapes; the i-th pairs of all shapes together give one value of the spread."""
    pairs = [_pairs(shape, effort) for shape in SHAPES]
    rounds = [geometric_mean(values) for values in zip(*(p.ratios() for p in pairs), strict=True)]
    return Figure(geometric_mean([p.ratio() for p in pairs]), quartile_range(rounds), {"pairs": len(rounds)})


def _pairs(shape: tuple[int, int, int], effort: Effort) -> Pairs:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(effort.batch, *shape, generator=generator).requires_grad_()
    slope = torch.randn(effort.batch, *shape, generator=generator)
    w = torch.rand(effort.batch, generator=generator)
    weighted, plain = WeightedBatchNorm2d(shape[0]), nn.BatchNorm2d(shape[0])
    backward = _both_ways(weighted, x, slope)

    def under_weights() -> None:
        with sample_weights(weighted, w):
            backward()

    return interleave(under_weights, _both_ways(plain, x, slope), effort.times(40), warmup=effort.warmup)


def _both_ways(layer: nn.BatchNorm2d, x: Tensor, slope: Tensor) -> Action:
    """Forward, then the gradients of the input and of both parameters."""
    return lambda: torch.autograd.grad(layer(x), (x, layer.weight, layer.bias), slope)


def on_unit_sphere(rows: Tensor) -> Tensor:
    """Every example divided by its Euclidean length."""
    return F.normalize(rows.flatten(1), dim=1).view_as(rows)


def divergence(first: Tensor, second: Tensor) -> Tensor:
    """Mean over the batch of KL(softmax(first) ‖ softmax(second))."""
    return F.kl_div(second.log_softmax(1), first.log_softmax(1), log_target=True, reduction="batchmean")


class NaiveVAT:
    """Each call is one step.

    Args:
        scenario: the data.
        model: any classifier; it is trained.
        batch_size: of the labeled and of the unlabeled batch.
    """

    def __init__(self, scenario: Scenario, model: nn.Module, batch_size: int) -> None:
        # A private generator for loaders and noise: nothing in this package touches the global one.
        self.generator = torch.Generator().manual_seed(SEED)
        self.model = model.train()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        self.labeled = self._endless(TensorDataset(*scenario.labeled), batch_size)
        self.unlabeled = self._endless(TensorDataset(scenario.unlabeled), batch_size)

    def _endless(self, data: Dataset[Any], batch_size: int) -> Iterator[Any]:
        loader = DataLoader(data, batch_size, shuffle=True, drop_last=True, generator=self.generator)
        while True:
            yield from loader

    def __call__(self) -> None:
        """One labeled pass, one clean, one for the direction, one perturbed; then Adam."""
        (x, y), (u,) = next(self.labeled), next(self.unlabeled)
        supervised = F.cross_entropy(self.model(x), y)
        clean = self.model(u).detach()
        probe = on_unit_sphere(torch.randn(u.shape, generator=self.generator)).requires_grad_()
        (slope,) = torch.autograd.grad(divergence(clean, self.model(u + XI * probe)), probe)
        smoothness = divergence(self.model(u + EPS * on_unit_sphere(slope)), clean)
        self.optimizer.zero_grad()
        (supervised + COEF * smoothness).backward()
        self.optimizer.step()


def naive_over_ours(effort: Effort) -> Figure:
    """A step of the naive loop over a step of the library without weights."""
    scenario = images(effort.pool)
    model = build_model("lenet", scenario.input_shape, scenario.num_classes, torch.Generator().manual_seed(SEED))
    ours = stepper(make_trainer(scenario, batch_size=effort.batch))
    return interleave(NaiveVAT(scenario, model, effort.batch), ours, effort.times(25), 10, effort.warmup).figure()


def import_over_torch(effort: Effort) -> Figure:
    """Importing the package and one of its layers over importing torch alone; the first pair fills the disk cache."""
    ours, torch = partial(output_of, "-c", OURS), partial(output_of, "-c", TORCH)
    return interleave(ours, torch, effort.times(7), warmup=1).figure()


def help_seconds(effort: Effort) -> Figure:
    """Seconds of ``python -m wrssl --help``; the one figure that is no ratio: a user waits for it."""
    spent = []
    for _ in range(effort.times(5)):
        start = time.perf_counter()
        output_of("-m", "wrssl", "--help")
        spent.append(time.perf_counter() - start)
    return summary(spent)
