"""What a run would do and how long it would take, without training and without writing anything."""

from __future__ import annotations

import math
import time
from typing import Any

from wrssl.data import Scenario
from wrssl.evaluate import FALSE_DROP_RATE, logits_of
from wrssl.norm.native import native_kernels
from wrssl.training.assembly import Assembly, assemble
from wrssl.training.candidate import steps_between_evaluations
from wrssl.training.fallback import WEIGHTED
from wrssl.training.rundir import check_free
from wrssl.training.steps import choose_steps, trial_seconds
from wrssl.training.threads import threads as use_threads

# Options of fit that a plan need not know about.
DEFAULTS: dict[str, Any] = {
    "steps": "auto", "gate": None, "fallback": False, "method_options": None, "weight_options": None,
    "budget": "halves", "head": None, "fast": True, "false_drop_rate": FALSE_DROP_RATE,
}  # fmt: skip
TRIED = 500  # examples whose judging is timed


def plan_run(scenario: Scenario, out: Any = None, **options: Any) -> dict[str, Any]:
    """The settings of the run, its models, and the predicted seconds of each part.

    The pool is really looked at, as ``fit`` would, and a few steps of each model are timed.

    Args:
        scenario: the data.
        out: the run directory; only whether it could be used is checked.
        options: of ``fit``, all that ``assemble`` takes.
    """
    if out is not None:
        check_free(out)
    made = assemble(scenario, **options)
    with use_threads(made.threads), native_kernels(options["fast"]):
        start = time.perf_counter()
        made.main.look_at_the_pool()
        seconds = {"looking at the pool": time.perf_counter() - start}
        models = {WEIGHTED: made.main, **made.others}
        steps = choose_steps(options["steps"], scenario, made.main.trainer, len(models), say=False)
        start = time.perf_counter()
        logits_of(made.main.net.module, scenario.unlabeled[:TRIED])
        per_example = (time.perf_counter() - start) / min(TRIED, len(scenario.unlabeled))
        looks = _examples_looked_at(made, steps)
        for name, candidate in models.items():
            per_step = trial_seconds(candidate.trainer)[0]
            seconds[f"training the {name} model"] = steps * per_step + looks * per_example
    judged = len(scenario.unlabeled) + (0 if scenario.test is None else len(scenario.test[1]))
    seconds["judging the pool"] = judged * per_example
    return {
        "config": {**made.config, "steps": steps},
        "models": [candidate.title for candidate in models.values()],
        "seconds": seconds,
        "total_seconds": math.fsum(seconds.values()),
    }


def affordable_steps(scenario: Scenario, options: dict[str, Any], models: int, seconds: float) -> int:
    """What ``"auto"`` means where so many models have to be trained in so many seconds."""
    made = assemble(scenario, **{**DEFAULTS, **options})
    with use_threads(made.threads), native_kernels(True):
        made.main.look_at_the_pool()
        return choose_steps("auto", scenario, made.main.trainer, models, say=False, seconds=seconds)


def _examples_looked_at(made: Assembly, steps: int) -> int:
    """In all evaluations of one model."""
    select = made.main.shop.data.roles.select
    return 0 if select is None else len(select[1]) * math.ceil(steps / steps_between_evaluations(steps))
