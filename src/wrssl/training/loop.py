"""The one loop: every method and every weighting goes through it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from wrssl.api import Context, DivergenceError, Method, Pass, Weighting
from wrssl.evaluate import accuracy_and_loss, logits_of
from wrssl.training.callbacks import Callback
from wrssl.training.data import Batches, TrainingData
from wrssl.training.gate import Gate
from wrssl.training.passes import PolicyNet
from wrssl.training.randomness import is_stochastic, private_global, stream, stream_seed
from wrssl.training.step import Outcome, TrainingStep
from wrssl.training.stopwatch import Stopwatch
from wrssl.training.tally import ALWAYS, Tally

LR_DROP = 0.2  # the learning rate is multiplied by this at half time
SKIPPED = 20  # steps in a row that cannot be taken end a run; in a short one a quarter of its steps


@dataclass(frozen=True)
class Plan:
    """The numbers of a run.

    Attributes:
        steps: optimiser steps.
        batch_size: of the labelled, the unlabelled and the validation batch, each.
        lr: initial learning rate.
        seed: of every stream of random numbers.
        eval_every: steps between two looks at the select set.
    """

    steps: int
    batch_size: int
    lr: float
    seed: int
    eval_every: int


@dataclass
class Best:
    """The checkpoint with the lowest validation error; equal errors are decided by the validation loss."""

    step: int = 0
    accuracy: float = -1.0
    loss: float = math.inf
    state: dict[str, Tensor] = field(default_factory=dict)

    def offer(self, step: int, accuracy: float, loss: float, model: torch.nn.Module) -> None:
        """Keep a copy of the model if it is better; one whose predictions are not finite never is."""
        if math.isfinite(loss) and (accuracy, -loss) > (self.accuracy, -self.loss):
            self.step, self.accuracy, self.loss = step, accuracy, loss
            self.state = {k: v.detach().clone() for k, v in model.state_dict().items()}


class Trainer:
    """Trains one model.

    Args:
        data: what training may see.
        net: the network under its batch-statistics policy.
        method: the base method.
        weighting: set up already.
        plan: the numbers.
        device: where the network lives.
        callbacks: watchers.
        gate: what the unlabelled term has to pass, or None.
    """

    def __init__(
        self,
        data: TrainingData,
        net: PolicyNet,
        method: Method,
        weighting: Weighting,
        plan: Plan,
        device: torch.device,
        callbacks: Sequence[Callback] = (),
        gate: Gate | None = None,
    ) -> None:
        self.data, self.net, self.method, self.weighting = data, net, method, weighting
        self.plan, self.device, self.callbacks = plan, device, list(callbacks)
        parameters = [p for p in net.module.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(parameters, lr=plan.lr, fused=True)
        self.perform = TrainingStep(net, method, weighting, self.optimizer, gate)
        self.batches = Batches(data, plan.batch_size, plan.seed, device)
        self.best, self.history, self.tally = Best(), list[dict[str, Any]](), Tally()
        self.weight_rows = list[dict[str, Any]]()  # how the weights were spread at each evaluation
        self.done = 0  # steps performed; above 0 in a resumed run
        self.stopwatch = Stopwatch()  # the part of a resumed run that is over counts too
        self._stochastic = is_stochastic(net.module)

    def run(self) -> None:
        """All steps that are still to do."""
        for callback in self.callbacks:
            callback.on_start(self.done, self.plan.steps)
        try:
            self._run()
        finally:
            for callback in self.callbacks:
                callback.on_end()

    def _run(self) -> None:
        for step in range(self.done, self.plan.steps):
            start = time.perf_counter()
            outcome = self.step(step)
            self.stopwatch.add(time.perf_counter() - start)
            self.done = step + 1
            self.tally.add(outcome)
            if self.done % self.plan.eval_every == 0 or self.done == self.plan.steps:
                self._evaluate()
            for callback in self.callbacks:  # after the look at the select set: who stops here has everything
                callback.on_step(step, outcome)

    def step(self, step: int) -> Outcome:
        """One step, numbered from 0."""
        seed, plan = self.plan.seed, self.plan
        for group in self.optimizer.param_groups:
            group["lr"] = plan.lr * (LR_DROP if step >= plan.steps / 2 else 1.0)
        if self.method.uses_unlabeled:
            self.weighting.begin_step(step)
            self.batches.admit(self.weighting.admission())
        options = self.weighting.estimator(step) if self.method.uses_unlabeled else None
        updates = options is not None and options.outer == "validation"
        context = Context(
            step,
            plan.steps,
            stream(seed, "augment", step),
            stream(seed, "attack", step),
            self.data.noise,
            self.data.epsilon,
            self.data.augmentation,
        )
        self.net.parts.train()
        with private_global(stream_seed(seed, "dropout", step), self._stochastic):
            return self.perform(self.batches(step, updates, self.weighting.wants_reference), context)

    def _evaluate(self) -> None:
        """Look at the select set, keep the best checkpoint, write a row of history."""
        row: dict[str, Any] = {"step": self.done, "lr": self.optimizer.param_groups[0]["lr"]}
        tally, self.tally = self.tally, self.tally.following()
        row |= {name: tally.mean(name) for name in ALWAYS}
        row["skipped"] = self._skipped(tally)
        row["gate_open"] = tally.mean("gate_open")
        row["val_accuracy"] = row["val_loss"] = None
        if self.data.roles.select is not None:
            x, y = self.data.roles.select
            logits = logits_of(self.net.module, x, self.device, self.net.evaluate)
            self.net.images[Pass.EVALUATION] += len(x)
            row["val_accuracy"], row["val_loss"] = accuracy_and_loss(logits, y)
            self.best.offer(self.done, row["val_accuracy"], row["val_loss"], self.net.module)
        row |= {name: tally.mean(name) for name in ("largest_eigenvalue", "stationarity")}
        row["seconds"] = self.stopwatch.total
        self.history.append(row)
        for callback in self.callbacks:
            callback.on_evaluate(row)

    def _skipped(self, tally: Tally) -> int:
        """How many steps since the last row could not be taken; too many in a row are an error."""
        number, in_a_row = tally.skipped()
        if in_a_row >= min(SKIPPED, max(1, self.plan.steps // 4)):
            often = f"{in_a_row} steps in a row" if in_a_row > 1 else "a step"
            raise DivergenceError(
                f"Up to step {self.done} the loss or its gradient was not finite in {often}; lower lr (it is "
                f"{self.plan.lr:g}), or check the scale of the data."
            )
        if number:  # an eigenvector that was found in such a step is none
            self.perform.hypergradient.load_state_dict({})
        return number

    def skipped_steps(self) -> int:
        """How many steps were not taken, because loss or gradient were not finite."""
        return sum(row.get("skipped", 0) for row in self.history)

    def take_best(self) -> None:
        """Put the best checkpoint into the model; without a select set the last one stays."""
        if self.best.state:
            self.net.module.load_state_dict(self.best.state)
        else:
            self.best.step = self.done

    def seconds_per_step(self) -> float:
        """The median of the last steps."""
        return self.stopwatch.median()
