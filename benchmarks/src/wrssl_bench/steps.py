"""Trainers on synthetic data, as ``wrssl.fit`` makes them, and what a step with weights costs over one without."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from wrssl.config import FitConfig
from wrssl.data import Scenario
from wrssl.training import BuildContext, Trainer, TrainingData
from wrssl_bench.timing import Effort, Figure, Pairs, interleave

SEED = 0
FEATURES = 8  # of a row of the table: small, so that ten million of them fit into any memory
ENDLESS = 10**9  # planned steps: no timed step comes near the drop of the learning rate
L = 5  # the paper's steps between two weight updates


@cache
def images(pool: int = 4_000, classes: int = 10, labels: int = 100) -> Scenario:
    """Noise in the shape of MNIST, with as many validation examples as labeled ones; times do not depend on content."""
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
    config = FitConfig(model, method, weights, policy, seed=SEED, weight_options=weight_options, batch_size=batch_size)
    data = TrainingData.of(scenario, SEED, config.budget)
    candidate = BuildContext(scenario, data, config, torch.device("cpu")).build()
    candidate.prepare_weighting()
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


def over_plain(
    effort: Effort,
    *,
    blocks: int,
    length: int,
    method: str = "vat",
    weights: str = "wr-cluster",
    trainers: int = 1,
    **options: Any,
) -> Figure:
    """A step of a weighting over a step of the same method with ``weights="none", bn="batch"``.

    Args:
        effort: how much work.
        blocks: pairs.
        length: steps of each that make up a pair; whole periods of the weighting.
        method: the base method of both.
        weights: the weighting of the numerator.
        trainers: fresh ones of each kind, one after the other: two equal trainers may differ by some percent all the
            time, by where their memory happens to be.
        options: its policy ``bn`` and its own options.
    """
    make = partial(make_trainer, images(effort.pool), method=method, batch_size=effort.batch)
    pairs = Pairs([], [])
    for _ in range(trainers):
        weighted, plain = stepper(make(weights=weights, **options)), stepper(make())
        more = interleave(weighted, plain, effort.times(blocks // trainers), length, effort.warmup)
        pairs.a.extend(more.a)
        pairs.b.extend(more.b)
    return pairs.figure()


def last_layer(effort: Effort, method: str) -> Figure:
    """Weights of clusters by the hypergradient of the last layer, with weighted batch norm."""
    return over_plain(effort, blocks=90, length=L, method=method, trainers=5, L=L)


def whole_network(effort: Effort, blocks: int, J: int, P: int, L: int) -> Figure:
    """The same with the hypergradient of all parameters."""
    return over_plain(effort, blocks=blocks, length=effort.updates * L, scope="network", J=J, P=P, L=L)


def rival(effort: Effort, weights: str, bn: str) -> Figure:
    """Another weighting with its own defaults; ten steps are whole periods for updates at every step or every fifth."""
    return over_plain(effort, blocks=10, length=10, weights=weights, bn=bn)
