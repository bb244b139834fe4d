"""From the options of a run to models that can be trained: what they share, the network, the pool for a weighting."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from wrssl.api import Method, OptionError, Pool, Weighting
from wrssl.config import FitConfig
from wrssl.data import Directions, Scenario, prepare, raw_rows, stream_seed, torch_stream
from wrssl.evaluate import is_ood
from wrssl.fast import accelerate
from wrssl.models import build_model, set_center, split, training_habit
from wrssl.norm import convert_batchnorm, use_native_kernels
from wrssl.registry import METHODS, WEIGHTINGS
from wrssl.training.batches import TrainingData
from wrssl.training.callbacks import Callback
from wrssl.training.embedding import PoolEmbedding
from wrssl.training.loop import Plan, Trainer
from wrssl.training.passes import PolicyNet
from wrssl.training.step import Gate, make_gate

EVALUATIONS = 20  # per run, but at least one every 100 steps


def steps_between_evaluations(steps: int) -> int:
    """In a run of so many."""
    return max(1, min(100, steps // EVALUATIONS))


@dataclass(frozen=True)
class BuildContext:
    """What all models of one fit share: the scenario, what training may see of it, the options, the device."""

    scenario: Scenario
    data: TrainingData
    config: FitConfig
    device: torch.device

    def build(self, **changes: Any) -> Candidate:
        """A fresh network with its method and weighting, by the options with these changes."""
        config = self.config.but(**changes)
        method: Method = METHODS.create(config.method, config.method_options)
        weighting: Weighting = WEIGHTINGS.create(config.weights, config.weight_options)
        gate = make_gate(config.gate, method)
        habit = training_habit(config.model, len(self.data.labeled[1]))
        own = "lr" in (config.method_options or {})  # a rate that was asked for goes before that of the network
        rate = config.lr or (None if own else habit.lr) or method.lr
        if not rate > 0:
            raise OptionError(f"lr must be above 0, but it is {rate}.")
        decay = habit.weight_decay if config.weight_decay is None else config.weight_decay
        net = build_network(self.scenario, config, self.device)
        method.setup(net)
        title = f"{config.method} · {config.weights} · {config.bn}"
        return Candidate(self, net, method, weighting, gate, rate, title, decay)


@dataclass(frozen=True)
class Candidate:
    """A model that a fit may return: a network, how it is trained, and a title."""

    context: BuildContext
    net: PolicyNet
    method: Method
    weighting: Weighting
    gate: Gate | None
    lr: float
    title: str
    weight_decay: float = 0.0

    def prepare_weighting(self) -> None:
        """Let the weighting see the pool; can take a while."""
        if self.method.uses_unlabeled:
            self.weighting.setup(self._pool())

    def trainer(self, steps: int, callbacks: Sequence[Callback] = ()) -> Trainer:
        """For so many steps."""
        config = self.context.config
        every = steps_between_evaluations(steps)
        plan = Plan(steps, config.batch_size, self.lr, config.seed, every, self.weight_decay)
        context = self.context
        return Trainer(context.data, self.net, self.method, self.weighting, plan, context.device, callbacks, self.gate)

    def _pool(self) -> Pool:
        """What the weighting may know about the pool."""
        scenario, data, seed = self.context.scenario, self.context.data, self.context.config.seed
        outer = data.labeled if data.roles.meta is None else data.roles.meta
        parts = [data.labeled] if data.roles.meta is None else [data.labeled, data.roles.meta]
        x, y = (torch.cat([part[side] for part in parts]) for side in (0, 1))
        rows = raw_rows if scenario.embedding is None else Directions(scenario.center)
        generator = torch_stream(seed, "embedding")
        embed = PoolEmbedding(scenario.unlabeled, x, self.net, self.context.device, generator, rows)
        return Pool(
            size=len(scenario.unlabeled),
            num_classes=scenario.num_classes,
            embed=embed,
            seed=stream_seed(seed, "weighting"),
            truth=is_ood(scenario) if self.weighting.wants_truth else None,
            reference=len(outer[1]),
            embed_known=embed.known,
            known_labels=y,
            embedded=scenario.embedding is not None,
            transform=embed.transform,
        )


def build_network(scenario: Scenario, config: FitConfig, device: torch.device) -> PolicyNet:
    """The model with weighted batch norm, split into backbone and head; a module of the user is copied first."""
    if isinstance(config.model, str):
        generator = torch_stream(config.seed, "initialisation")
        own = build_model(config.model, scenario.input_shape, scenario.num_classes, generator)
    else:
        own = copy.deepcopy(config.model)
    if len(scenario.input_shape) == 1:
        set_center(own, scenario)
    own = convert_batchnorm(own).to(device)
    use_native_kernels(own, config.fast)
    parts = split(own, prepare(scenario.labeled[0][:2]).to(device), config.head)
    if parts.head.out_features != scenario.num_classes:
        raise OptionError(
            f"The model gives {parts.head.out_features} logits but the labels have {scenario.num_classes} classes; "
            f"end the model with Linear(..., {scenario.num_classes})."
        )
    return PolicyNet(parts, config.bn, partial(accelerate, device=device) if config.fast else None)


def find_device(device: str | torch.device | None) -> torch.device:
    """The device of that name; None is a GPU where there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"Device {str(device)!r} is not available; use device='cpu' or leave it out.") from error
    return place
