"""The state of a run, so that it can be resumed exactly where it stopped: what it holds, and when it is stored.

Data order and random numbers are functions of the step (``order.py``, ``wrssl.data.streams``), so the state is small:
parameters, optimizer, method, weighting, the best checkpoint, and the history. ``wrssl.runs`` puts it on disk.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from wrssl.api import DataError, OptionError, Pass
from wrssl.runs import Generations, Interrupted, Snapshot, storing
from wrssl.training.callbacks import Callback
from wrssl.training.loop import Trainer
from wrssl.training.step import Outcome

SAVE_EVERY = 5.0  # seconds between two states; WRSSL_SAVE_EVERY in the environment overrules it
SHARE = 0.05  # of the time may go into storing; a state that takes long is stored less often


def _parts(trainer: Trainer) -> dict[str, dict[str, Tensor]]:
    moments = {
        f"{number}.{key}": value
        for number, entry in trainer.optimizer.state_dict()["state"].items()
        for key, value in entry.items()
    }
    return {
        "model": dict(trainer.net.module.state_dict()),
        "optimizer": moments,
        "method": trainer.method.state_dict(),
        "weighting": trainer.weighting.state_dict(),
        "hypergradient": trainer.perform.hypergradient.state_dict(),
        "best": trainer.best.state,
    }


def state_of(trainer: Trainer) -> Snapshot:
    """Everything that a trainer with the same settings needs to continue from here; copies."""
    tensors = {
        f"{part}/{name}": value.detach().cpu().contiguous().clone()
        for part, values in _parts(trainer).items()
        for name, value in values.items()
    }
    best = trainer.best
    numbers = {
        "step": trainer.done,
        "stopped": trainer.stopped,
        "best": {"step": best.step, "accuracy": best.accuracy, "loss": best.loss},
        "images": {kind.value: count for kind, count in trainer.net.images.items()},
        "history": trainer.history,
        "since": trainer.tally.to_json(),
        "weights": trainer.weight_rows,
        "seconds": trainer.stopwatch.to_json(),
    }
    return Snapshot(tensors, numbers)


def put_back(trainer: Trainer, snapshot: Snapshot) -> None:
    """Inverse of ``state_of``, for a trainer that was built with the same settings."""
    numbers = snapshot.numbers
    parts: dict[str, dict[str, Tensor]] = {}
    for key, value in snapshot.tensors.items():
        part, name = key.split("/", 1)
        parts.setdefault(part, {})[name] = value
    trainer.net.module.load_state_dict(parts["model"])
    _load_moments(trainer, parts.get("optimizer", {}))
    trainer.method.load_state_dict(parts.get("method", {}))
    if "weighting" in parts:
        trainer.weighting.load_state_dict(parts["weighting"])
    trainer.perform.hypergradient.load_state_dict(parts.get("hypergradient", {}))
    best = trainer.best
    best.state = parts.get("best", {})
    stored = numbers["best"]
    best.step, best.accuracy = int(stored["step"]), float(stored["accuracy"])
    best.loss = float("inf") if stored["loss"] is None else float(stored["loss"])
    trainer.net.images.clear()  # the passes so far are part of the state
    trainer.net.images.update({Pass(kind): int(count) for kind, count in numbers["images"].items()})
    trainer.history = list(numbers["history"])
    trainer.done, trainer.stopped = int(numbers["step"]), bool(numbers.get("stopped", False))
    trainer.tally.load(numbers["since"])
    trainer.weight_rows[:] = numbers["weights"]
    trainer.stopwatch.load(numbers["seconds"])


def _load_moments(trainer: Trainer, moments: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for key, value in moments.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = value
    trainer.optimizer.load_state_dict({**trainer.optimizer.state_dict(), "state": state})


class Checkpointer(Callback):
    """Stores the state every few seconds, at the end, and when the user wants the run to stop.

    Args:
        trainer: whose state.
        folder: where to; None where there is no run directory.
        stamp: identifies the settings of the run; a state that was written with other settings is refused.
        advice: how to go on after a stop.
        asked: the number of the signal that asks the run to stop, 0 for none.
    """

    def __init__(
        self,
        trainer: Trainer,
        folder: Path | None,
        stamp: str = "",
        advice: str = "",
        asked: Callable[[], int] = lambda: 0,
    ) -> None:
        self.trainer, self.stamp, self.advice, self.asked = trainer, stamp, advice, asked
        self.generations = None if folder is None else Generations(folder)
        self.group = trainer.net.devices.group
        self._pause = self._shortest = shortest_pause()
        self._stored, self._at = -1, time.monotonic()  # the last stored step, and when it was stored

    def load(self) -> None:
        """Put the newest state that is whole into the trainer, where there is one."""
        found = self._newest()
        if self.generations is None or found is None:
            return
        if found.numbers.get("stamp") != self.stamp:
            raise DataError(
                "The settings in config.json are not those with which the stored state was made; put the old file "
                "back, or start a new run in another folder."
            )
        try:
            put_back(self.trainer, found)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise DataError(
                f"The state in {self.generations.folder} is not one of this run; start a new run in another folder."
            ) from error
        self._stored = self.trainer.done

    def _newest(self) -> Snapshot | None:
        """The newest state that is whole; among several processes one reads and tells the others."""
        if self.generations is None:
            return None
        if self.group is None:
            return self.generations.read()
        found: Snapshot | None = self.group.from_leader(self.generations.read() if self.group.leads else None)
        return found

    def save(self) -> None:
        """Store the current state, unless it is stored already; among several processes one does."""
        trainer = self.trainer
        if self.generations is None or self._stored == trainer.done or not trainer.net.devices.lead:
            return
        start = time.monotonic()
        tensors, numbers = state_of(trainer)
        what = f"The state after step {trainer.done} of {trainer.plan.steps}"
        with storing(f"{what} in {self.generations.folder}", self.advice):
            self.generations.write(trainer.done, tensors, {**numbers, "stamp": self.stamp})
        self._stored, self._at = trainer.done, time.monotonic()
        if self._shortest > 0:  # 0 asks for a state after every step, whatever that costs
            self._pause = max(self._shortest, (self._at - start) / SHARE)

    def stop_if_asked(self) -> None:
        """End the run here, stored, if a signal asks for it."""
        number = self.asked() if self.group is None else self.group.largest(self.asked())
        if number:
            self.save()
            done, steps = self.trainer.done, self.trainer.plan.steps
            raise Interrupted(f"Stopped after step {done} of {steps}; {self.advice}", number)

    def on_step(self, trainer: Trainer, outcome: Outcome) -> None:
        """Stop here if asked to; save if the last time is long enough ago."""
        self.stop_if_asked()
        if self.generations is not None and time.monotonic() - self._at >= self._pause:
            self.save()


def shortest_pause() -> float:
    """Seconds between two states; ``WRSSL_SAVE_EVERY`` in the environment, else ``SAVE_EVERY``."""
    given = os.environ.get("WRSSL_SAVE_EVERY")
    if given is None:
        return SAVE_EVERY
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise OptionError(f"WRSSL_SAVE_EVERY must be a number of seconds, 0 or more, but it is {given!r}.")
    return seconds
