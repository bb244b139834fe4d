"""What is timed: trainers on synthetic data, put together as ``wrssl.fit`` puts them together."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from wrssl.data import Scenario
from wrssl.training.candidate import Workshop
from wrssl.training.data import TrainingData
from wrssl.training.loop import Trainer

SEED = 0
FEATURES = 8  # of a row of the table: small, so that ten million of them fit into any memory
ENDLESS = 10**9  # planned steps: none of those that are timed comes near the drop of the learning rate


@cache
def images(pool: int = 4_000, classes: int = 10, labels: int = 100) -> Scenario:
    """Noise in the shape of MNIST, with as many validation examples as labelled ones; time does not see content."""
    x = np.random.default_rng(SEED).standard_normal((pool + 2 * labels, 1, 28, 28), dtype=np.float32)
    y = np.arange(labels) % classes
    foreign = np.arange(pool) % 2 == 1  # for the oracle
    return Scenario((x[:labels], y), x[2 * labels :], (x[labels : 2 * labels], y), is_ood=foreign, name="noise images")


def table_rows(count: int, seed: int = SEED) -> npt.NDArray[np.uint8]:
    """Random rows of ``FEATURES`` bytes, all of them in memory, so that every batch is really gathered."""
    return np.random.default_rng(seed).integers(0, 256, (count, FEATURES), dtype=np.uint8)


def make_trainer(
    scenario: Scenario,
    model: str = "lenet",
    method: str = "vat",
    weights: str = "none",
    batch_size: int = 100,
    bn: str | None = None,
    **weight_options: Any,
) -> Trainer:
    """A trainer on the CPU, ready for its first step; its own network, method and weighting, shared data.

    Args:
        scenario: the data.
        model: by name.
        method: by name.
        weights: by name.
        batch_size: of each kind of batch.
        bn: the policy; None takes ``"batch"`` for the weighting none and ``"weighted"`` for the others.
        weight_options: options of the weighting.
    """
    policy = bn or ("batch" if weights == "none" else "weighted")
    data = TrainingData.of(scenario, SEED, "halves")
    shop = Workshop(scenario, data, model, None, SEED, batch_size, None, torch.device("cpu"), True)
    candidate = shop.build(method, None, weights, weight_options, policy)
    candidate.look_at_the_pool()
    return candidate.trainer(ENDLESS)


def table_trainer(pool: npt.NDArray[np.uint8], batch_size: int, **options: Any) -> Trainer:
    """A trainer of a small network on a pool of ``table_rows``; ``wr-cluster`` unless the options say otherwise."""
    x, y = table_rows(200, SEED + 1), np.arange(100) % 10
    scenario = Scenario((x[:100], y), pool, (x[100:], y), name="noise table")
    return make_trainer(scenario, "mlp", batch_size=batch_size, **{"weights": "wr-cluster", **options})


def stepper(trainer: Trainer) -> Callable[[], object]:
    """Each call is the next step of this trainer."""
    numbers = itertools.count()
    return lambda: trainer.step(next(numbers))
