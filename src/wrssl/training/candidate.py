"""One model that a fit may return, ready to be trained, and what all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from wrssl.api import Method, OptionError, Pool, Weighting
from wrssl.data import Scenario
from wrssl.evaluate.truth import is_ood
from wrssl.methods import METHODS
from wrssl.training.callbacks import Callback
from wrssl.training.data import TrainingData
from wrssl.training.embedding import PoolEmbedding
from wrssl.training.gate import Gate, make_gate
from wrssl.training.loop import Plan, Trainer
from wrssl.training.network import build_network
from wrssl.training.passes import PolicyNet
from wrssl.training.randomness import stream, stream_seed
from wrssl.weighting import WEIGHTINGS

EVALUATIONS = 20  # per run, but at least one every 100 steps


def steps_between_evaluations(steps: int) -> int:
    """In a run of so many."""
    return max(1, min(100, steps // EVALUATIONS))


@dataclass(frozen=True)
class Workshop:
    """What every model of one fit has in common: data, network, seed, batch size, learning rate if one was given."""

    scenario: Scenario
    data: TrainingData
    model: str | nn.Module
    head: str | None
    seed: int
    batch_size: int
    lr: float | None
    device: torch.device
    fast: bool

    def build(
        self,
        method: str,
        method_options: dict[str, Any] | None,
        weights: str,
        weight_options: dict[str, Any] | None,
        bn: str,
        gate: str | None = None,
    ) -> Candidate:
        """A fresh network with its method and weighting."""
        base, weighting = METHODS.create(method, method_options), WEIGHTINGS.create(weights, weight_options)
        guard = make_gate(gate, base)
        rate = base.lr if self.lr is None else self.lr
        if not rate > 0:
            raise OptionError(f"lr must be above 0, but it is {rate}.")
        net = build_network(self.scenario, self.model, bn, self.head, self.seed, self.device, self.fast)
        base.setup(net)
        return Candidate(self, net, base, weighting, guard, rate, f"{method} · {weights} · {bn}")


@dataclass(frozen=True)
class Candidate:
    """A network, how it is trained, and the words for it."""

    shop: Workshop
    net: PolicyNet
    method: Method
    weighting: Weighting
    gate: Gate | None
    lr: float
    title: str

    def look_at_the_pool(self) -> None:
        """Let the weighting prepare itself; can take a while."""
        if self.method.uses_unlabeled:
            shop = self.shop
            pool = pool_of(shop.scenario, shop.data, self.weighting, self.net, shop.device, shop.seed)
            self.weighting.setup(pool)

    def trainer(self, steps: int, watchers: Sequence[Callback] = ()) -> Trainer:
        """For so many steps."""
        shop = self.shop
        plan = Plan(steps, shop.batch_size, self.lr, shop.seed, steps_between_evaluations(steps))
        return Trainer(shop.data, self.net, self.method, self.weighting, plan, shop.device, watchers, self.gate)


def pool_of(
    scenario: Scenario, data: TrainingData, weighting: Weighting, net: PolicyNet, device: torch.device, seed: int
) -> Pool:
    """What the weighting may know about the pool."""
    outer = data.labeled if data.roles.meta is None else data.roles.meta
    parts = [data.labeled] if data.roles.meta is None else [data.labeled, data.roles.meta]
    x, y = (torch.cat([part[side] for part in parts]) for side in (0, 1))
    embed = PoolEmbedding(scenario.unlabeled, x, net, device, stream(seed, "embedding"))
    return Pool(
        len(scenario.unlabeled),
        scenario.num_classes,
        embed,
        stream_seed(seed, "weighting"),
        is_ood(scenario) if weighting.wants_truth else None,
        len(outer[1]),
        embed.known,
        y,
    )
