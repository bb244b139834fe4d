"""How much work a training is: its number of steps and its threads.

Splitting an operation between threads costs some microseconds each time, which small networks never earn back, and a
second thread that has to wait for a busy core stops the first as well. The number of threads follows from the network
and the batch alone, never from a stopwatch: floating-point sums depend on it, and the same seed has to give the same
result.
"""

from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from wrssl.data import Scenario
from wrssl.models import undisturbed
from wrssl.training.loop import Trainer

NAMED = 2_000  # the paper's budget on MNIST
SECONDS = 120.0  # the longest training that "auto" plans on own data
VISITS = 20  # of each pool member
FEWEST = 200
TRIAL = 6
WORTHWHILE = 2e9  # floating-point operations in one pass over a batch; a judgement: small networks were slower with two


def choose_steps(
    steps: int | str,
    scenario: Scenario,
    make_trainer: Callable[[int], Trainer],
    models: int = 1,
    say: bool = True,
    seconds: float = SECONDS,
) -> int:
    """The number itself, or for ``"auto"`` 2,000 (named scenarios) or what fits size of the pool and two minutes.

    On own data: 20 visits of each pool member, between 200 and 2,000 steps, cut to two minutes for all ``models`` that
    are to be trained, by the median time of a few trial steps on a copy; the model and the weights stay untouched.
    """
    if not isinstance(steps, str):
        return int(steps)
    if scenario.recipe is not None:
        return NAMED
    per_step, batch_size = trial_seconds(make_trainer)
    wanted = max(FEWEST, min(NAMED, VISITS * len(scenario.unlabeled) // batch_size))
    chosen = max(10, min(wanted, int(seconds / models / per_step)))
    if say:
        print(f"steps: {chosen}, at about {1000 * per_step:.0f} ms each", file=sys.stderr)
    return chosen


def trial_seconds(make_trainer: Callable[[int], Trainer]) -> tuple[float, int]:
    """The median time of a step, by a few steps that leave no trace; and the size of a batch."""
    trial = make_trainer(TRIAL)
    state = copy.deepcopy(trial.net.module.state_dict())
    method = copy.deepcopy(trial.method.state_dict())
    # A method that ignores the pool has a weighting that was never set up, and no step changes it.
    weighting = copy.deepcopy(trial.weighting.state_dict()) if trial.method.uses_unlabeled else {}
    times = []
    for step in range(TRIAL):
        start = time.perf_counter()
        trial.step(step)
        times.append(time.perf_counter() - start)
    trial.net.module.load_state_dict(state)
    trial.method.load_state_dict(method)
    if weighting:
        trial.weighting.load_state_dict(weighting)
    trial.net.images.clear()
    return statistics.median(times), trial.plan.batch_size


def choose_threads(asked: int | None, model: nn.Module, example: Tensor, batch_size: int) -> int:
    """The number of threads for this training; if it is not asked for, never more than torch may use now.

    Args:
        asked: what the user wants; None decides by the size of the work.
        model: the network.
        example: one or more inputs of it.
        batch_size: examples per pass.
    """
    if asked is not None:
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
def use_threads(number: int) -> Iterator[None]:
    """Within the context torch uses this many threads; afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
