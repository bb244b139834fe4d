"""Supervised, plain and robust training, with equally many steps, on the same random splits of the labels.

The answer is about the pool as it is, that is, about plain training against the labels alone; the advice takes robust
training into account.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from wrssl.api import DivergenceError, OptionError
from wrssl.auditing.answer import PLAIN, ROBUST, SUPERVISED, Audit, advice_for
from wrssl.auditing.splits import all_labels, split
from wrssl.data import Scenario
from wrssl.evaluate.paired import correlation, paired_interval
from wrssl.progress import bar
from wrssl.training.fitting import fit
from wrssl.training.planning import affordable_steps
from wrssl.training.steps import check_steps

SECONDS = 240.0  # for all trainings that "auto" plans
FEWEST_STEPS = 200


def audit(
    scenario: Scenario,
    model: Any = "auto",
    method: str = "vat",
    weights: str = "wr",
    steps: int | str = "auto",
    seed: int = 0,
    repeats: int = 5,
    device: Any = None,
    *,
    batch_size: int = 100,
    lr: float | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Audit:
    """Whether the pool helps, hurts or makes no difference, by training with and without it.

    Args:
        scenario: the data; its test set is not looked at.
        model: as for ``fit``.
        method: the semi-supervised method.
        weights: of robust training.
        steps: of every training; ``"auto"`` plans about four minutes for all of them, but at least 200 steps each.
        seed: every random number follows from it.
        repeats: splits of the labels; more give a narrower interval.
        device: as for ``fit``.
        batch_size: as for ``fit``.
        lr: as for ``fit``.
        threads: as for ``fit``.
        progress: show a progress bar; None shows one where standard error is a terminal.
    """
    if repeats < 2:
        raise OptionError(f"repeats must be at least 2, since an interval needs a spread; it is {repeats}.")
    parts = [split(scenario, seed + number) for number in range(repeats)]
    common: dict[str, Any] = {"model": model, "device": device, "batch_size": batch_size, "lr": lr, "threads": threads}
    robust: dict[str, Any] = {"method": method, "weights": weights, "bn": "weighted"}
    kinds: dict[str, dict[str, Any]] = {
        SUPERVISED: {"method": "supervised", "weights": "none", "bn": "batch"},
        PLAIN: {"method": method, "weights": "none", "bn": "batch"},
        ROBUST: robust,
    }
    count = _steps(steps, parts[0], {**common, **robust, "seed": seed}, len(kinds) * repeats, progress)
    found: dict[str, list[float]] = {name: [] for name in kinds}
    foreign, notes = list[float](), list[str]()
    for number, name in _walk([(n, name) for n in range(repeats) for name in kinds], progress):
        try:
            result = fit(
                parts[number], steps=count, seed=seed + number, fallback=False, progress=False, **kinds[name], **common
            )
        except DivergenceError:  # on such a pool that is an answer too
            notes.append(f"The {name} training of repetition {number} broke down and counts as guessing.")
            found[name].append(1 / scenario.num_classes)
            continue
        found[name].append(result.metrics["test_accuracy"])
        if name == ROBUST and result.metrics["foreign_share"] is not None:
            foreign.append(result.metrics["foreign_share"])
    one = parts[0]
    assert one.test is not None
    rho = correlation(len(one.labeled[1]), len(one.test[1]), len(all_labels(scenario)[1]))
    base, plain, weighted = (np.asarray(found[name]) for name in (SUPERVISED, PLAIN, ROBUST))
    gap, gain = paired_interval(plain - base, rho), paired_interval(weighted - base, rho)
    answer = "helps" if gap.low > 0 else "hurts" if gap.high < 0 else "neutral"
    share = float(np.mean(foreign)) if foreign else None
    return Audit(answer, gap, gain, found, share, advice_for(gap, gain), count, notes)


def _steps(steps: int | str, scenario: Scenario, options: dict[str, Any], trainings: int, progress: bool | None) -> int:
    """Equally many for every training."""
    if steps != "auto":
        return check_steps(steps)
    found = max(FEWEST_STEPS, affordable_steps(scenario, options, trainings, SECONDS))
    if progress is not False:
        print(f"{trainings} trainings of {found} steps each", file=sys.stderr)
    return found


def _walk(tasks: list[tuple[int, str]], progress: bool | None) -> Iterator[tuple[int, str]]:
    """The tasks, with a bar on standard error where somebody watches."""
    with bar("audit", len(tasks), show=progress) as tick:
        for number, name in tasks:
            tick(0, title=f"split {number + 1}, {name}")
            yield number, name
            tick()
