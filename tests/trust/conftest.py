"""Tiny data for everything that must survive bad input."""

from __future__ import annotations

import csv
import functools
import os
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import wrssl
from wrssl.training import Batches, Trainer


def two_blobs(size: int, seed: int, features: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Rows around (−1, …) and (+1, …), and which of the two."""
    own = np.random.default_rng(seed)
    y = np.arange(size) % 2
    return (own.normal(size=(size, features)) + 2 * y[:, None] - 1).astype(np.float32), y


@pytest.fixture(scope="session")
def blobs() -> wrssl.Scenario:
    """Twelve labels, forty members, twelve validation examples."""
    return wrssl.Scenario(two_blobs(12, 0), two_blobs(40, 1)[0], two_blobs(12, 2))


class BrokenBatches:
    """The batches of a run, with ``value`` everywhere in one part of them in some steps."""

    def __init__(self, whole: Batches, steps: Collection[int], part: str, value: float) -> None:
        self.whole, self.steps, self.part, self.value = whole, steps, part, value
        self.visit = whole.visit

    def __call__(self, step: int, *wishes: bool) -> Any:
        batch = self.whole(step, *wishes)
        if step not in self.steps:
            return batch
        return replace(batch, **{self.part: torch.full_like(getattr(batch, self.part), self.value)})


class Explosion(wrssl.Callback):
    """In these steps this part of the batch, ``"x_l"`` or ``"x_u"``, holds ``value``."""

    def __init__(self, steps: Collection[int], part: str = "x_u", value: float = float("nan")) -> None:
        self.broken = steps, part, value

    def on_start(self, trainer: Trainer) -> None:
        trainer.batches = BrokenBatches(trainer.batches, *self.broken)


@pytest.fixture(scope="session")
def explode() -> type[Explosion]:
    """The callback that breaks batches; for a single trainer call its ``on_start``."""
    return Explosion


# ---- `make campaign`: one row per property, if WRSSL_RECORD names a file ----

tried: dict[str, int] = {}
failed: dict[str, int] = {}
seconds: dict[str, float] = {}
running: list[str] = []


def _name(item: pytest.Item) -> str:
    return f"{item.path.name}::{item.name}"


def _counted(inner: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(inner)
    def run(*arguments: Any, **named: Any) -> None:
        tried[running[-1]] = tried.get(running[-1], 0) + 1
        inner(*arguments, **named)

    run.counted = True
    return run


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Count the cases of a property; of another test there is one."""
    running.append(_name(item))
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    if handle is not None and not hasattr(handle.inner_test, "counted"):
        handle.inner_test = _counted(handle.inner_test)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Remember how it went."""
    report = (yield).get_result()
    if report.when == "call" and not report.skipped:
        name = _name(item)
        tried.setdefault(name, 1)
        failed[name], seconds[name] = int(report.failed), report.duration


def pytest_sessionfinish() -> None:
    """Write the file; what it says of properties that did not run now stays."""
    place = os.environ.get("WRSSL_RECORD")
    if place and seconds:
        rows = {}
        if os.path.exists(place):
            with open(place, newline="", encoding="utf-8") as file:
                rows = {row[0]: row for row in list(csv.reader(file))[1:]}
        rows |= {name: [name, tried[name], failed[name], f"{seconds[name]:.1f}"] for name in seconds}
        with open(place, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["property", "cases", "failed", "seconds"])
            writer.writerows(rows[name] for name in sorted(rows))
