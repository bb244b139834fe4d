"""Which statistics a fused block normalises with."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from wrssl.norm import Source
from wrssl.norm.layers import Weighted
from wrssl.norm.policies import PassState


class Statistics(NamedTuple):
    """Which mean and variance normalise the batch: those of the batch, weighted or not, or given ones.

    Args:
        share: what each example counts, (N,), sum one; None counts all alike.
        running: a given mean and variance; None takes those of the batch.
    """

    share: Tensor | None = None
    running: tuple[Tensor, Tensor] | None = None


ORDINARY = Statistics()


def statistics_of(norm: Weighted, asked: PassState, x: Tensor, positions: int) -> tuple[Statistics, float]:
    """What a pass asks of this layer for a batch ``x``, and the effective number of values behind it.

    Args:
        norm: the layer.
        asked: what the surrounding context says.
        x: the batch; only its length and type count.
        positions: values per channel and example.
    """
    if asked.source is Source.BATCH:
        return ORDINARY, len(x) * positions
    if asked.counts is not None:
        norm.check_weights(x, asked.counts.w)
        values = asked.counts.values(positions)
        if values:
            return Statistics(asked.counts.shares(x.dtype)), values
    assert norm.running_mean is not None
    assert norm.running_var is not None
    # Clones: derivatives need the statistics of now, and a later pass may move the buffers before.
    return Statistics(None, (norm.running_mean.clone(), norm.running_var.clone())), 0.0
