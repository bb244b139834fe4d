"""How many steps to train."""

from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Callable

from wrssl.api import OptionError
from wrssl.data import Scenario
from wrssl.training.loop import Trainer

NAMED = 2_000  # the paper's budget on MNIST
SECONDS = 120.0  # the longest training that "auto" plans on own data
VISITS = 20  # of each pool member
FEWEST = 200
TRIAL = 6


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
    if steps != "auto":
        return check_steps(steps)
    if scenario.recipe is not None:
        return NAMED
    per_step, batch_size = trial_seconds(make_trainer)
    wanted = max(FEWEST, min(NAMED, VISITS * len(scenario.unlabeled) // batch_size))
    chosen = max(10, min(wanted, int(seconds / models / per_step)))
    if say:
        print(f"steps: {chosen}, at about {1000 * per_step:.0f} ms each", file=sys.stderr)
    return chosen


def check_steps(steps: int | str) -> int:
    """A number of steps that can be performed, or an ``OptionError``."""
    if isinstance(steps, bool) or not isinstance(steps, int):
        raise OptionError(f"steps must be a whole number or 'auto', not {steps!r}.")
    if steps < 1:
        raise OptionError(f"steps must be at least 1, but it is {steps}.")
    return steps


def trial_seconds(make_trainer: Callable[[int], Trainer]) -> tuple[float, int]:
    """The median time of a step, by a few steps that leave no trace; and the size of a batch."""
    trial = make_trainer(TRIAL)
    state = copy.deepcopy(trial.net.module.state_dict())
    method = copy.deepcopy(trial.method.state_dict())
    # A method that ignores the pool has a weighting that was never set up, and nothing moves it.
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
