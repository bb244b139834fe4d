"""A step with weights over a step without: A and B are trainers of their own and take steps in turns."""

from __future__ import annotations

from functools import partial
from typing import Any

from wrssl.bench.effort import Effort
from wrssl.bench.timing import Figure, Pairs, interleave
from wrssl.bench.trainers import images, make_trainer, stepper

L = 5  # the paper's steps between two weight updates


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
        trainers: fresh ones of each kind, one after the other: two equal trainers may differ by some percent for all
            their lives, by where their memory happens to lie.
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
