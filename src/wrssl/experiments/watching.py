"""A run whose weights are looked at while it goes on: the mean weight of own and of foreign members over the steps.

``wrssl.fit`` keeps the spread of the weights but not the truth about who is foreign, which no training object may see;
the watcher belongs to the evaluation and knows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wrssl.api import DataError, Weighting
from wrssl.data import Scenario
from wrssl.evaluate.truth import is_ood
from wrssl.training.callbacks import Callback
from wrssl.training.judge import final_weights
from wrssl.training.result import Result

HEADER = "step,mean_weight_id,mean_weight_ood,val_accuracy"


class GroupMeans(Callback):
    """Writes down the mean weight of both groups before the first step and at each evaluation."""

    weighting: Weighting

    def __init__(self, foreign: NDArray[np.bool_]) -> None:
        self.foreign = foreign
        self.rows: list[str] = []

    def on_ready(self, weighting: Weighting) -> None:
        """Whom to ask."""
        self.weighting = weighting

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
    """``wrssl.fit(scenario, **settings)``, watched.

    Args:
        scenario: with both own and foreign members in its pool.
        settings: of ``wrssl.fit``.

    Returns:
        The result, and the curve as a CSV file.
    """
    import wrssl

    truth = is_ood(scenario)
    if truth is None or bool(truth.all()) or not bool(truth.any()):
        raise DataError("Weight curves need a pool with both own and foreign members; choose a ratio between 0 and 1.")
    watcher = GroupMeans(truth.numpy())
    result = wrssl.fit(scenario, callbacks=[watcher], **settings)
    return result, "\n".join([HEADER, *watcher.rows, ""]).encode()
