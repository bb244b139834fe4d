"""How many threads a training uses.

Splitting an operation between threads costs some microseconds each time, which small networks never earn back, and a
second thread that has to wait for a busy core stops the first as well. The number follows from the network and the
batch alone, never from a stopwatch: floating-point sums depend on it, and the same seed has to give the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from wrssl.api import OptionError
from wrssl.models import undisturbed

WORTHWHILE = 2e9  # floating-point operations in one pass over a batch; a judgement: small networks were slower with two


def choose_threads(asked: int | None, model: nn.Module, example: Tensor, batch_size: int) -> int:
    """The number of threads for this training; if it is not asked for, never more than torch may use now.

    Args:
        asked: what the user wants; None leaves it to the size of the work.
        model: the network.
        example: one or more inputs of it.
        batch_size: examples per pass.
    """
    if asked is not None:
        if asked < 1:
            raise OptionError(f"threads must be at least 1, but it is {asked}; leave it out to have it chosen.")
        return asked
    allowed = torch.get_num_threads()
    if allowed == 1 or example.device.type != "cpu":
        return allowed
    return allowed if flops(model, example[:1]) * batch_size >= WORTHWHILE else 1


def flops(model: nn.Module, example: Tensor) -> int:
    """Floating-point operations of one forward pass, counted by torch; mode and buffers stay as they are."""
    with undisturbed(model, example.device), FlopCounterMode(display=False) as counter:
        model(example)
    return int(counter.get_total_flops())


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Within the context torch uses this many threads; afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
