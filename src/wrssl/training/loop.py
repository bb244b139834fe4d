"""The one loop: every method and every weighting goes through it. Its counters are below it."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from wrssl.api import Context, DivergenceError, Method, Pass, Weighting
from wrssl.data import stream_seed, torch_stream
from wrssl.evaluate import accuracy_and_loss, logits_of
from wrssl.training.batches import Batches, TrainingData
from wrssl.training.callbacks import Callback
from wrssl.training.passes import PolicyNet
from wrssl.training.step import Gate, Outcome, TrainingStep

LR_DROP = 0.2  # the learning rate is multiplied by this at half time
SKIPPED_IN_A_ROW = 20  # steps in a row that cannot be taken end a run; in a short one a quarter of its steps
RECENT = 1000  # steps behind the median of their times


@dataclass(frozen=True)
class Plan:
    """The numbers of a run.

    Attributes:
        steps: optimizer steps.
        batch_size: of the labeled, the unlabeled and the validation batch, each.
        lr: initial learning rate.
        seed: of every stream of random numbers.
        eval_every: steps between two evaluations on the select set.
        weight_decay: μ; adds μ/2 ‖θ‖² to the loss.
    """

    steps: int
    batch_size: int
    lr: float
    seed: int
    eval_every: int
    weight_decay: float = 0.0


@dataclass
class Best:
    """The checkpoint with the lowest validation error; equal errors are decided by the validation loss."""

    step: int = 0
    accuracy: float = -1.0
    loss: float = math.inf
    state: dict[str, Tensor] = field(default_factory=dict)

    def offer(self, step: int, accuracy: float, loss: float, model: nn.Module) -> None:
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
        gate: what may leave the unlabeled term out, or None.

    Attributes:
        done: steps performed; above 0 at the start of a resumed run.
        stopped: whether a callback has ended the run.
        history: a row per evaluation.
        weight_rows: the distribution of the weights at each evaluation (``WeightHistory``).
        best: the best checkpoint so far.
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
        self.optimizer = torch.optim.Adam(parameters, lr=plan.lr, weight_decay=plan.weight_decay, fused=True)
        self.perform = TrainingStep(net, method, weighting, self.optimizer, gate)
        self.batches = Batches(data, plan.batch_size, plan.seed, device)
        self.best, self.history, self.tally = Best(), list[dict[str, Any]](), Tally()
        self.weight_rows = list[dict[str, Any]]()
        self.done, self.stopped, self.last = 0, False, plan.steps
        self.stopwatch = Stopwatch()  # includes the finished part of a resumed run
        self._stochastic = _is_stochastic(net.module)

    def run(self) -> None:
        """All remaining steps."""
        for callback in self.callbacks:
            callback.on_start(self)
        try:
            while self.done < self.last and not self.stopped:
                self._advance()
            if not self.history:  # stopped before the first step: the network as it was initialized
                self._evaluate()
        finally:
            for callback in self.callbacks:
                callback.on_end(self)

    def stop(self) -> None:
        """End the run after the current step; its result is kept, with the checkpoint and the weights as they are."""
        self.stopped = True

    def stop_at(self, step: int) -> None:
        """End after so many steps, with the schedule of the whole plan: for models beside one that was stopped."""
        self.last = min(self.last, step)

    def _advance(self) -> None:
        start, step = time.perf_counter(), self.done
        outcome = self.step(step)
        self.stopwatch.add(time.perf_counter() - start)
        self.done = step + 1
        self.tally.add(outcome)
        evaluated = self.done % self.plan.eval_every == 0 or self.done == self.last
        if evaluated:
            self._evaluate()
        for callback in self.callbacks:  # after the evaluation, so that stopping loses no history
            callback.on_step(self, outcome)
            if self.stopped and not evaluated:
                evaluated = True
                self._evaluate()

    def step(self, step: int) -> Outcome:
        """One step, numbered from 0."""
        seed, plan, request = self.plan.seed, self.plan, None
        for group in self.optimizer.param_groups:
            group["lr"] = plan.lr * (LR_DROP if step >= plan.steps / 2 else 1.0)
        if self.method.uses_unlabeled:
            self.weighting.begin(step)
            self.batches.visit(self.weighting.visits)
            request = self.weighting.request(step)
        needs_validation = request is not None and request.outer == "validation"
        batch = self.batches(step, needs_validation, self.weighting.wants_reference)
        context = Context(
            step,
            plan.steps,
            torch_stream(seed, "augment", step),
            torch_stream(seed, "attack", step),
            self.data.noise,
            self.data.epsilon,
            self.data.changes_of_pool(batch.index),
        )
        self.net.parts.train()
        with _seeded_dropout(stream_seed(seed, "dropout", step), self._stochastic):
            return self.perform(batch, context, request)

    def _evaluate(self) -> None:
        """Evaluate on the select set, keep the best checkpoint, append a row to the history."""
        row: dict[str, Any] = {"step": self.done, "lr": self.optimizer.param_groups[0]["lr"]}
        tally, self.tally = self.tally, self.tally.following()
        row |= {name: tally.mean(name) for name in ALWAYS}
        row["skipped"] = self._skipped(tally)
        row["gate_open"] = tally.mean("gate_open")
        row["val_accuracy"] = row["val_loss"] = None
        if self.data.roles.select is not None:
            x, y = self.data.roles.select
            logits = logits_of(self.net.joined, x, self.device)
            self.net.images[Pass.EVALUATION] += len(x)
            row["val_accuracy"], row["val_loss"] = accuracy_and_loss(logits, y)
            self.best.offer(self.done, row["val_accuracy"], row["val_loss"], self.net.module)
        row |= {name: tally.mean(name) for name in ("largest_eigenvalue", "stationarity")}
        row["seconds"] = self.stopwatch.total
        self.history.append(row)
        for callback in self.callbacks:
            callback.on_evaluate(self, row)

    def _skipped(self, tally: Tally) -> int:
        """How many steps since the last row could not be taken; too many in a row are an error."""
        number, in_a_row = tally.skipped()
        if in_a_row >= min(SKIPPED_IN_A_ROW, max(1, self.plan.steps // 4)):
            often = f"{in_a_row} steps in a row" if in_a_row > 1 else "a step"
            raise DivergenceError(
                f"Up to step {self.done} the loss or its gradient was not finite in {often}; lower lr (it is "
                f"{self.plan.lr:g}), or check the scale of the data."
            )
        if number:  # an eigenvector that was found in such a step is invalid
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


def _is_stochastic(model: nn.Module) -> bool:
    """Whether the model draws random numbers of its own in training, which torch takes from the global generator."""
    dropouts = (nn.modules.dropout._DropoutNd, nn.RReLU)
    return any(isinstance(m, dropouts) or getattr(m, "dropout", 0) for m in model.modules())


@contextmanager
def _seeded_dropout(seed: int, active: bool) -> Iterator[None]:
    """Within this the global generator is seeded; afterwards it is as before. For models with dropout only."""
    if not active:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


ALWAYS = ("loss", "labeled", "unlabeled", "mean_weight")
SOMETIMES = ("gate_open", "largest_eigenvalue", "stationarity")
SKIPPED, BEFORE = "skipped", "skipped_before"  # per step; how many in a row there were when this began


class Tally:
    """What the steps since the last row of history reported, as tensors, so that nothing waits for the device."""

    def __init__(self) -> None:
        self._values: dict[str, list[Tensor]] = {name: [] for name in (*ALWAYS, *SOMETIMES, SKIPPED, BEFORE)}

    def add(self, outcome: Outcome) -> None:
        """One step more."""
        for name in ALWAYS:
            self._values[name].append(getattr(outcome, name))
        estimate = outcome.estimate
        if outcome.skipped is not None:
            self._values[SKIPPED].append(outcome.skipped)
        measured = (None, None) if estimate is None else (estimate.largest_eigenvalue, estimate.stationarity)
        for name, value in zip(SOMETIMES, (outcome.open, *measured), strict=True):
            if value is not None:
                self._values[name].append(value)

    def mean(self, name: str) -> float | None:
        """Over the steps that reported a finite value; None where none did."""
        if not self._values[name]:
            return None
        values = torch.stack(self._values[name]).double()
        known = values[values.isfinite()]
        return float(known.mean()) if len(known) else None

    def skipped(self) -> tuple[int, int]:
        """How many steps were skipped, and how many at most in a row, those right before among them."""
        return int(sum(_numbers(self._values[SKIPPED]))), self._in_a_row()[1]

    def following(self) -> Tally:
        """An empty one for the next row, which knows how many steps in a row are skipped already."""
        after = Tally()
        after._values[BEFORE] = [torch.tensor(self._in_a_row()[0], dtype=torch.float64)]
        return after

    def _in_a_row(self) -> tuple[int, int]:
        """Up to now, and at most."""
        row = longest = int(sum(_numbers(self._values[BEFORE])))
        for skipped in _numbers(self._values[SKIPPED]):
            row = row + 1 if skipped else 0
            longest = max(longest, row)
        return row, longest

    def to_json(self) -> dict[str, list[float]]:
        """For a run that stops between two rows."""
        return {name: [float(value) for value in values] for name, values in self._values.items()}

    def load(self, stored: dict[str, list[float]]) -> None:
        """Inverse of ``to_json``; what is not finite was stored as null."""
        for name, values in stored.items():
            self._values[name] = [torch.tensor(float("nan") if v is None else v, dtype=torch.float64) for v in values]


def _numbers(values: list[Tensor]) -> list[float]:
    numbers: list[float] = torch.stack(values).tolist() if values else []
    return numbers


class Stopwatch:
    """Adds up the seconds of steps and knows the median of the last ones, in bounded memory."""

    def __init__(self) -> None:
        self.total = 0.0
        self._recent: deque[float] = deque(maxlen=RECENT)

    def add(self, seconds: float) -> None:
        """One step more."""
        self.total += seconds
        self._recent.append(seconds)

    def median(self) -> float:
        """Of the last steps, so that one slow step does not count; NaN before the first."""
        return statistics.median(self._recent) if self._recent else math.nan

    def to_json(self) -> dict[str, float]:
        """For a run that goes on later."""
        return {"total": self.total, "median": self.median()}

    def load(self, stored: dict[str, float | None]) -> None:
        """Inverse of ``to_json``: the stored median stands for all steps until new ones outvote it."""
        self.total = float(stored["total"] or 0.0)
        self._recent.clear()
        if stored["median"] is not None:
            self._recent.append(float(stored["median"]))
