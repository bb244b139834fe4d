"""A run whose weights are looked at while it goes on: the mean weight of own and of foreign members over the steps.

``wrssl.fit`` keeps the spread of the weights but not the truth about who is foreign, which no training object may see.
Here the same parts are put together with a watcher that belongs to the evaluation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wrssl.api import DataError, Weighting
from wrssl.data import Scenario
from wrssl.data.patience import silence
from wrssl.evaluate.truth import is_ood
from wrssl.evaluate.verdicts import FALSE_DROP_RATE
from wrssl.norm.native import native_kernels
from wrssl.training.assembly import assemble
from wrssl.training.callbacks import Callback
from wrssl.training.judge import final_weights, judge
from wrssl.training.result import Result
from wrssl.training.threads import threads

HEADER = "step,mean_weight_id,mean_weight_ood,val_accuracy"


class GroupMeans(Callback):
    """Writes down the mean weight of both groups before the first step and at each evaluation."""

    def __init__(self, weighting: Weighting, foreign: NDArray[np.bool_]) -> None:
        self.weighting, self.foreign = weighting, foreign
        self.rows: list[str] = []

    def on_start(self, start: int, steps: int) -> None:
        """The weights that training begins with."""
        self._look(start, None)

    def on_evaluate(self, row: dict[str, Any]) -> None:
        """The weights of now."""
        self._look(int(row["step"]), row["val_accuracy"])

    def _look(self, step: int, accuracy: float | None) -> None:
        w = final_weights(self.weighting, len(self.foreign))
        right = "" if accuracy is None else f"{accuracy:.6g}"
        self.rows.append(f"{step},{w[~self.foreign].mean():.6g},{w[self.foreign].mean():.6g},{right}")


def fit_and_watch(scenario: Scenario, settings: dict[str, Any]) -> tuple[Result, bytes]:
    """As ``wrssl.fit(scenario, **settings)`` without fallback and without a run directory.

    Args:
        scenario: with both own and foreign members in its pool.
        settings: model, method, weights, bn, steps, seed, weight_options, lr, budget, threads, fallback.

    Returns:
        The result, and the curve as a CSV file.
    """
    truth = is_ood(scenario)
    if truth is None or bool(truth.all()) or not bool(truth.any()):
        raise DataError("Weight curves need a pool with both own and foreign members; choose a ratio between 0 and 1.")
    made = assemble(
        scenario, gate=None, device=None, method_options=None, batch_size=100, head=None, fast=True,
        false_drop_rate=FALSE_DROP_RATE, **settings,
    )  # fmt: skip
    with threads(made.threads), native_kernels(True), silence(True):
        made.main.look_at_the_pool()
        watcher = GroupMeans(made.main.weighting, truth.numpy())
        trainer = made.main.trainer(settings["steps"], [watcher])
        trainer.run()
        result = judge(scenario, trainer, made.config)
    return result, "\n".join([HEADER, *watcher.rows, ""]).encode()
