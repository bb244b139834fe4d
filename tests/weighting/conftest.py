"""Pools and signals, as the loop would hand them to a weighting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wrssl.api import Context, Pool, Signal
from wrssl.data import torch_stream
from wrssl.models import split
from wrssl.registry import METHODS, WEIGHTINGS
from wrssl.training import Batch, Outcome, PolicyNet, TrainingStep


@pytest.fixture(autouse=True)
def no_test_uses_a_global_generator(global_rng_untouched):
    """Every test of this folder runs with it."""


def three_blobs(n: int = 30, dims: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Rows in mixed order around three far corners, and the corner of each."""
    generator = torch.Generator().manual_seed(seed)
    corner = torch.randperm(n, generator=generator) % 3
    centers = 10 * torch.eye(3, dims)
    return centers[corner] + 0.1 * torch.randn(n, dims, generator=generator), corner


@pytest.fixture
def blobs() -> Callable[..., tuple[Tensor, Tensor]]:
    return three_blobs


@pytest.fixture
def make_pool() -> Callable[..., Pool]:
    """A pool whose embeddings of every kind are three blobs; ``pool.embed.asked`` lists what was asked for.

    So is the reference, unless ``known`` says otherwise; its classes are 0 and 1 in turn.
    """

    class Embed:
        def __init__(self, rows: Tensor) -> None:
            self.rows, self.asked = rows, list[str]()

        def __call__(self, kind: str) -> Tensor:
            self.asked.append(kind)
            return self.rows

    def make(
        rows: Tensor | None = None,
        size: int | None = None,
        seed: int = 3,
        truth: Tensor | None = None,
        reference: int = 0,
        known: Tensor | None = None,
    ) -> Pool:
        rows = three_blobs()[0] if rows is None else rows
        known = three_blobs(24, rows.shape[1], seed=1)[0] if known is None else known
        number = len(rows) if size is None else size
        return Pool(number, 10, Embed(rows), seed, truth, reference, Embed(known), torch.arange(len(known)) % 2)

    return make


@pytest.fixture
def make_signal() -> Callable[..., Signal]:
    """Losses are 1 and predictions equal, unless they are given."""

    def make(
        gradient: Sequence[float] | Tensor | None,
        step: int = 0,
        losses: Tensor | None = None,
        probabilities: Tensor | None = None,
    ) -> Signal:
        g = None if gradient is None else torch.as_tensor(gradient, dtype=torch.float32)
        n = 1 if g is None else len(g)
        losses = torch.ones(n) if losses is None else losses
        probabilities = torch.full((n, 10), 0.1) if probabilities is None else probabilities
        return Signal(step, losses, probabilities, g)

    return make


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class OneStep:
    """Training steps in float64, and everything that they compute a second time, from raw matrices.

    The network is 3-5-3 without batch norm, the pool has 30 members, the optimizer is plain SGD. θ and Φ are lists of
    matrices, first layer first; ``scope`` says which of θ a virtual step moves.
    """

    def __init__(self, weights: str, method: str = "entmin", threshold: float = 0.0, **options: Any) -> None:
        self.coef, self.method, self.options, self.rate = 0.8, method, options, 0.1
        with torch.random.fork_rng(devices=[]):  # torch initializes from the global generator
            model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3)).double()
        with torch.no_grad():
            for number, p in enumerate(model.parameters()):
                p.copy_(0.9 * normal(*p.shape, seed=number))
        self.net = PolicyNet(split(model, normal(4, 3, seed=9)), "batch")
        base = METHODS.create(method, {"coef": self.coef, **({"threshold": threshold} if method == "pl" else {})})
        self.weighting: Any = WEIGHTINGS.create(weights, options)
        self.weighting.setup(Pool(30, 3, lambda kind: normal(30, 3, seed=3).float(), 0, reference=20))
        self.weighting.table = self.weighting.table.double()
        self.step = TrainingStep(self.net, base, self.weighting, torch.optim.SGD(model.parameters(), lr=self.rate))

    def batch(self, number: int, validation: bool = True) -> Batch:
        """The data of this step; ``reference`` names validation rows, or labeled ones where there are no others."""
        x_l, x_u, x_v = (normal(n, 3, seed=100 * n + number) for n in (6, 8, 7))
        held = (x_v, torch.arange(7) % 3) if validation else None
        index, reference = (torch.arange(8) + 3 * number) % 30, torch.arange(7 if validation else 6) + number
        return Batch(x_l, (torch.arange(6) + number) % 3, x_u, index, held, None, reference)

    def take(self, number: int, validation: bool = True) -> Outcome:
        """Step ``number`` by the code under test, with the current rate; the weighting is asked as the loop asks it."""
        self.step.optimizer.param_groups[0]["lr"] = self.rate
        streams = (torch_stream(0, name, number) for name in ("augment", "attack"))
        self.weighting.begin(number)
        request = self.weighting.request(number)
        return self.step(self.batch(number, validation), Context(number, 10, *streams, 0.1, 0.5), request)

    def theta(self) -> list[Tensor]:
        """The parameters, as leaves of their own."""
        return [p.detach().clone().requires_grad_() for p in self.net.module.parameters()]

    @staticmethod
    def logits(theta: Sequence[Tensor], x: Tensor) -> Tensor:
        W1, b1, W2, b2 = theta
        return (x @ W1.T + b1).clamp_min(0) @ W2.T + b2

    def labeled(self, theta: Sequence[Tensor], number: int) -> Tensor:
        batch = self.batch(number)
        return F.cross_entropy(self.logits(theta, batch.x_l), batch.y_l)

    def validation(self, theta: Sequence[Tensor], number: int) -> Tensor:
        x, y = self.batch(number).validation or (torch.empty(0), torch.empty(0))
        return F.cross_entropy(self.logits(theta, x), y)

    def losses(self, theta: Sequence[Tensor], number: int) -> Tensor:
        """r of entmin, or of pl with a threshold of 0."""
        z = self.logits(theta, self.batch(number).x_u)
        if self.method == "pl":
            return F.cross_entropy(z, z.detach().argmax(1), reduction="none")
        return -(z.softmax(1) * z.log_softmax(1)).sum(1)

    def ahead(self, theta: Sequence[Tensor], loss: Tensor, rate: float) -> list[Tensor]:
        """θ − η ∇loss for the part of θ that the scope names; differentiable."""
        first = 2 if self.options.get("scope") == "head" else 0
        gradients = torch.autograd.grad(loss, theta[first:], create_graph=True)
        moved = [p - rate * g for p, g in zip(theta[first:], gradients, strict=True)]
        return [*theta[:first], *moved]

    def trained(self, theta: Sequence[Tensor], number: int, factors: Tensor) -> list[Tensor]:
        """θ after the real step: all of it moves, along ∇[CE + λ mean(f r)] with constant f."""
        loss = self.labeled(theta, number) + self.coef * (factors.detach() * self.losses(theta, number)).mean()
        gradients = torch.autograd.grad(loss, theta)
        return [(p - self.rate * g).detach() for p, g in zip(theta, gradients, strict=True)]

    def weigh_in_double(self) -> list[Tensor]:
        """Put V into float64, with a new optimizer; returns a copy of Φ."""
        net = self.weighting.net
        net.parameters = [p.detach().double().requires_grad_() for p in net.parameters]
        group = net.optimizer.param_groups[0]
        net.optimizer = torch.optim.Adam(net.parameters, lr=group["lr"], weight_decay=group["weight_decay"])
        return [p.detach().clone().requires_grad_() for p in net.parameters]

    @staticmethod
    def weigh(phi: Sequence[Tensor], a: Tensor) -> Tensor:
        """V(a; Φ)."""
        W1, b1, W2, b2 = phi
        return torch.sigmoid((a @ W1.T + b1).clamp_min(0) @ W2[0] + b2)


@pytest.fixture
def one_step() -> type[OneStep]:
    return OneStep
