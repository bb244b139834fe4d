"""Separate streams of random numbers, each a function of (seed, name, step) alone.

A stream that depends on the step instead of on its own history needs no state in a checkpoint, and two runs that differ
in the method still share split, initialisation and data order. Nothing reads or seeds torch's global generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from wrssl.data.streams import sequence


def stream_seed(seed: int, name: str, step: int = 0) -> int:
    """A 63-bit seed for one stream at one step."""
    return int(sequence(seed, name, step).generate_state(1, np.uint64)[0] >> np.uint64(1))


def stream(seed: int, name: str, step: int = 0) -> torch.Generator:
    """A CPU generator for one stream at one step."""
    return torch.Generator().manual_seed(stream_seed(seed, name, step))


def is_stochastic(model: nn.Module) -> bool:
    """Whether the model draws random numbers of its own in training, which torch takes from the global generator."""
    dropouts = (nn.modules.dropout._DropoutNd, nn.RReLU)
    return any(isinstance(m, dropouts) or getattr(m, "dropout", 0) for m in model.modules())


@contextmanager
def private_global(seed: int, active: bool) -> Iterator[None]:
    """Within the context the global generator is seeded; afterwards it is as it was. For models with dropout only."""
    if not active:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
