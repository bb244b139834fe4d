"""Splits of the labels for an audit.

With a validation set, every repetition draws a new labeled set of the old size from the labeled and the validation
examples, and halves the rest into validation and test examples. Without one, a third of the labels of every class is
held out as test examples, and nothing validates.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from wrssl.api import DataError
from wrssl.data import Embedding, Scenario, numpy_stream

FEWEST = 3  # labeled examples of every class, of which one is held out


def all_labels(scenario: Scenario) -> tuple[Tensor, Tensor]:
    """The labeled and the validation examples."""
    parts = [part for part in (scenario.labeled, scenario.validation) if part is not None]
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


def split(scenario: Scenario, seed: int) -> Scenario:
    """The same pool with other labeled, validation and test examples, all from the given labels."""
    x, y = all_labels(scenario)
    size = torch.bincount(y, minlength=scenario.num_classes)
    if int(size.min()) < FEWEST:
        name = scenario.classes[int(size.argmin())]
        raise DataError(
            f"The class {name} has {int(size.min())} labeled examples, and an audit holds out some and needs at least "
            f"{FEWEST}; label more of it."
        )
    rank = _rank_within_class(y, seed)
    other = copy.copy(scenario)
    other.recipe = other.folders = None  # what is in it now cannot be loaded by them
    if scenario.validation is None:
        test = rank < (size[y] // 3).clamp(min=1)
        other.labeled, other.test = (x[~test], y[~test]), (x[test], y[test])
        other.embedding = _with_views(scenario, ~test)
        return other
    # In the frequencies of all labels, so that a draw is not luckier than another.
    take = (len(scenario.labeled[1]) * size.double() / len(y)).round().long().clamp(min=1)
    labeled, odd = rank < take[y], (rank - take[y]) % 2 == 1
    for name, chosen in (("labeled", labeled), ("validation", ~labeled & odd), ("test", ~labeled & ~odd)):
        setattr(other, name, (x[chosen], y[chosen]))
    other.embedding = _with_views(scenario, labeled)
    return other


def _with_views(scenario: Scenario, labeled: Tensor) -> Embedding | None:
    """How the rows were made, with the views of these known rows only; held-out ones are not trained on."""
    made = scenario.embedding
    return None if made is None else replace(made, known_views=[view[labeled] for view in made.known_views])


def _rank_within_class(y: Tensor, seed: int) -> Tensor:
    """A random place of every example among those of its class, from 0."""
    labels = y.numpy()
    order, rank = numpy_stream(seed, "audit").permutation(len(labels)), np.empty(len(labels), dtype=np.int64)
    for value in np.unique(labels):
        there = order[labels[order] == value]
        rank[there] = np.arange(len(there))
    return torch.from_numpy(rank)
