"""The loop that one writes without this library: VAT as in its paper, one pass after the other, plain autograd.

It computes what ``method="vat", weights="none", bn="batch"`` computes, with the same model, batch size, ε, ξ, λ and
learning rate, so that the ratio of the two says what the library's own code is worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from wrssl.bench.effort import Effort
from wrssl.bench.timing import Figure, interleave
from wrssl.bench.trainers import SEED, images, make_trainer, stepper
from wrssl.data import Scenario
from wrssl.models import build_model

EPS, XI, COEF, RATE = 3.0, 0.1, 0.3, 3e-3


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
        batch_size: of the labelled and of the unlabelled batch.
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
        """One labelled pass, one clean, one for the direction, one perturbed; then Adam."""
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
