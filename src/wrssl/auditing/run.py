"""Supervised, plain and robust training, with equally many steps, on the same random splits of the labels.

The answer is about the pool as it is, that is, about plain training against the labels alone; the advice takes robust
training into account.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np

from wrssl import progress
from wrssl.api import DivergenceError, OptionError
from wrssl.auditing.answer import PLAIN, ROBUST, SUPERVISED, Audit, advice_for
from wrssl.auditing.splits import all_labels, split
from wrssl.config import FitConfig, left_out, takes_options
from wrssl.data import Scenario
from wrssl.evaluate import correlation, paired_interval
from wrssl.training import affordable_steps, fit_with_config, see

SECONDS = 240.0  # for all trainings that "auto" plans
FEWEST_STEPS = 200


@takes_options(FitConfig, leave_out=left_out("audit"))
def audit(scenario: Scenario, config: FitConfig, *, repeats: int = 5) -> Audit:  # noqa: D417  (options are added)
    """Whether the pool helps, hurts or makes no difference, by training with and without it.

    The test set of the scenario is not used. ``steps="auto"`` plans about four minutes for all trainings, but at least
    200 steps each.

    Args:
        scenario: the data.
        repeats: splits of the labels; more give a narrower interval.
    """
    if repeats < 2:
        raise OptionError(f"repeats must be at least 2, since an interval needs a spread; it is {repeats}.")
    scenario, config, _ = see(scenario, config)
    parts = [split(scenario, config.seed + number) for number in range(repeats)]
    alone = config.but(weights="none", weight_options=None, bn="batch", gate=None)
    kinds = {
        SUPERVISED: alone.but(method="supervised", method_options=None),
        PLAIN: alone,
        ROBUST: config.but(bn="weighted"),
    }
    count = _steps(parts[0], kinds[ROBUST], len(kinds) * repeats)
    found: dict[str, list[float]] = {name: [] for name in kinds}
    foreign, notes = list[float](), list[str]()
    with progress.bar("audit", len(kinds) * repeats, show=config.progress) as tick:
        for number, name in itertools.product(range(repeats), kinds):
            tick(0, title=f"split {number + 1}, {name}")
            once = {"steps": count, "seed": config.seed + number, "fallback": False, "progress": False}
            try:
                result = fit_with_config(parts[number], kinds[name].but(**once))
            except DivergenceError:  # on such a pool that is an answer too
                notes.append(f"The {name} training of repetition {number} broke down and counts as guessing.")
                found[name].append(1 / scenario.num_classes)
            else:
                found[name].append(result.metrics["test_accuracy"])
                if name == ROBUST and result.metrics["foreign_share"] is not None:
                    foreign.append(result.metrics["foreign_share"])
            tick(1)
    one = parts[0]
    assert one.test is not None
    rho = correlation(len(one.labeled[1]), len(one.test[1]), len(all_labels(scenario)[1]))
    base, plain, weighted = (np.asarray(found[name]) for name in (SUPERVISED, PLAIN, ROBUST))
    gap, gain = paired_interval(plain - base, rho), paired_interval(weighted - base, rho)
    answer = "helps" if gap.low > 0 else "hurts" if gap.high < 0 else "neutral"
    share = float(np.mean(foreign)) if foreign else None
    return Audit(answer, gap, gain, found, share, advice_for(gap, gain), count, notes)


def _steps(scenario: Scenario, config: FitConfig, trainings: int) -> int:
    """Equally many for every training."""
    if not isinstance(config.steps, str):
        return config.steps
    found = max(FEWEST_STEPS, affordable_steps(scenario, config, trainings, SECONDS))
    if config.progress is not False:
        print(f"{trainings} trainings of {found} steps each", file=sys.stderr)
    return found
