"""The state of a run, so that it can go on exactly where it stopped.

Data order and random numbers are functions of the step (order.py, randomness.py), so the state is small: parameters,
optimiser, method, weighting, the best checkpoint, and the history. ``generations.py`` puts it on disk.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from wrssl.api import Pass
from wrssl.training.generations import Snapshot
from wrssl.training.loop import Trainer

SAVE_EVERY = 5.0  # seconds between two states; WRSSL_SAVE_EVERY in the environment overrules it


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
    """Everything that a trainer with the same settings needs to go on from here; copies."""
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
    trainer.net.images.clear()  # what was needed to get here is part of the state
    trainer.net.images.update({Pass(kind): int(count) for kind, count in numbers["images"].items()})
    trainer.history = list(numbers["history"])
    trainer.done = int(numbers["step"])
    trainer.tally.load(numbers["since"])
    trainer.weight_rows[:] = numbers["weights"]
    trainer.stopwatch.load(numbers["seconds"])


def _load_moments(trainer: Trainer, moments: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for key, value in moments.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = value
    trainer.optimizer.load_state_dict({**trainer.optimizer.state_dict(), "state": state})
