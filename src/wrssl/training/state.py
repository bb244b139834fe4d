"""The state of a run on disk, so that it can go on exactly where it stopped.

Data order and random numbers are functions of the step (order.py, randomness.py), so the state is small: parameters,
optimiser, method, weighting, the best checkpoint, and the history. Tensors go to safetensors, the rest to JSON; nothing
is ever unpickled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from wrssl.api import DataError, Pass
from wrssl.training.callbacks import Callback
from wrssl.training.files import read_json, write_atomically, write_json
from wrssl.training.interrupt import Interrupted
from wrssl.training.loop import Trainer
from wrssl.training.step import Outcome

TENSORS, NUMBERS = "state.safetensors", "state.json"
SAVE_EVERY = 5.0  # seconds; evaluations that follow each other more closely share a file


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


def save_state(trainer: Trainer, folder: Path) -> None:
    """Write the state of ``trainer`` into ``folder``."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        f"{part}/{name}": value.detach().cpu().contiguous().clone()
        for part, values in _parts(trainer).items()
        for name, value in values.items()
    }
    best = trainer.best
    numbers = {
        "step": trainer.done,
        "best": {"step": best.step, "accuracy": best.accuracy, "loss": best.loss},
        "images": {kind.value: count for kind, count in trainer.net.images.items()},
        "seconds_per_step": trainer.seconds_per_step(),
        "history": trainer.history,
        "since": trainer.tally.to_json(),
        "weights": trainer.weight_rows,
        "seconds": trainer.seconds_before + sum(trainer.durations),
    }
    # The step is stored in both files: a stop between the two renames is noticed when they are read.
    metadata = {"step": str(trainer.done)}
    write_atomically(folder / TENSORS, lambda p: save_file(tensors, p, metadata=metadata))
    write_json(folder / NUMBERS, numbers)


def load_state(trainer: Trainer, folder: Path) -> None:
    """Put a saved state into ``trainer``, which must have been built with the same settings."""
    from safetensors import safe_open

    try:
        numbers = read_json(folder / NUMBERS)
        with safe_open(folder / TENSORS, framework="pt") as file:
            step = (file.metadata() or {}).get("step")
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  (not a mapping)
    except Exception as error:
        raise DataError(
            f"The state in {folder} cannot be read ({error}); start the run anew in another folder."
        ) from error
    if step != str(numbers["step"]):
        raise DataError(f"The two state files in {folder} belong to different steps; start the run anew.")
    parts: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
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
    trainer.net.images.clear()  # what was needed to get here is part of the state
    trainer.net.images.update({Pass(kind): int(count) for kind, count in numbers["images"].items()})
    trainer.history = list(numbers["history"])
    trainer.done = int(numbers["step"])
    trainer.tally.load(numbers["since"])
    trainer.weight_rows[:] = numbers["weights"]
    trainer.seconds_before = float(numbers["seconds"])


def _load_moments(trainer: Trainer, moments: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for key, value in moments.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = value
    trainer.optimizer.load_state_dict({**trainer.optimizer.state_dict(), "state": state})


class Checkpointer(Callback):
    """Saves the state after evaluations, at most every few seconds, and when the user wants the run to stop.

    Args:
        trainer: whose state.
        folder: where to; None where there is no run directory.
        asked: whether somebody wants the run to stop.
        advice: how to go on then.
    """

    def __init__(
        self, trainer: Trainer, folder: Path | None, asked: Callable[[], bool] = lambda: False, advice: str = ""
    ) -> None:
        self.trainer, self.folder, self.asked, self.advice = trainer, folder, asked, advice
        self._saved = time.monotonic()

    def on_step(self, step: int, outcome: Outcome) -> None:
        """Stop here if asked to."""
        if self.asked():
            if self.folder is not None:
                save_state(self.trainer, self.folder)
            raise Interrupted(f"Stopped after step {self.trainer.done} of {self.trainer.plan.steps}; {self.advice}")

    def on_evaluate(self, row: dict[str, Any]) -> None:
        """Save if the last time is long enough ago."""
        if self.folder is not None and time.monotonic() - self._saved > SAVE_EVERY:
            save_state(self.trainer, self.folder)
            self._saved = time.monotonic()
