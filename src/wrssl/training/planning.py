"""What a run would do and how long it would take, without training and without writing anything."""

from __future__ import annotations

import math
import time
from typing import Any

from wrssl.config import FitConfig
from wrssl.data import Scenario
from wrssl.evaluate import logits_of
from wrssl.runs import check_free
from wrssl.training.assembly import Assembly, assemble
from wrssl.training.building import steps_between_evaluations
from wrssl.training.effort import choose_steps, trial_seconds, use_threads
from wrssl.training.seeing import see

TRIED = 500  # examples whose judging is timed


def plan_run(scenario: Scenario, config: FitConfig) -> dict[str, Any]:
    """The settings of the run, its models, and the predicted seconds of each part.

    The weighting really sees the pool, as in ``fit``, and a few steps of each model are timed.
    """
    if config.out is not None:
        check_free(config.out)
    start = time.perf_counter()
    scenario, config, embedder = see(scenario, config)
    seconds = {} if embedder is None else {"embedding, which is done now": time.perf_counter() - start}
    made = assemble(scenario, config)
    with use_threads(made.threads):
        start = time.perf_counter()
        made.main.prepare_weighting()
        seconds["preparing the weighting"] = time.perf_counter() - start
        steps = choose_steps(config.steps, scenario, made.main.trainer, len(made.models), say=False)
        start = time.perf_counter()
        logits_of(made.main.net.module, scenario.unlabeled[:TRIED])
        per_example = (time.perf_counter() - start) / min(TRIED, len(scenario.unlabeled))
        evaluated = _examples_evaluated(made, steps)
        for name, candidate in made.models.items():
            per_step = trial_seconds(candidate.trainer)[0]
            seconds[f"training the {name} model"] = steps * per_step + evaluated * per_example
    judged = len(scenario.unlabeled) + (0 if scenario.test is None else len(scenario.test[1]))
    seconds["judging the pool"] = judged * per_example
    return {
        "config": {**made.settings, "steps": steps},
        "models": [candidate.title for candidate in made.models.values()],
        "seconds": seconds,
        "total_seconds": math.fsum(seconds.values()),
    }


def affordable_steps(scenario: Scenario, config: FitConfig, models: int, seconds: float) -> int:
    """What ``steps="auto"`` means where so many models have to be trained in so many seconds."""
    made = assemble(scenario, config.but(fallback=False))
    with use_threads(made.threads):
        made.main.prepare_weighting()
        return choose_steps("auto", scenario, made.main.trainer, models, say=False, seconds=seconds)


def _examples_evaluated(made: Assembly, steps: int) -> int:
    """In all evaluations of one model."""
    select = made.context.data.roles.select
    return 0 if select is None else len(select[1]) * math.ceil(steps / steps_between_evaluations(steps))
