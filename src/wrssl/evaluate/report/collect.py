"""Everything that the page needs, as one dictionary that JSON can hold: the same run gives the same dictionary."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from wrssl.data import Scenario
from wrssl.evaluate.report import clusters
from wrssl.evaluate.report.batch_statistics import compare
from wrssl.evaluate.report.judged import judge_labels
from wrssl.evaluate.report.members import listed, summary
from wrssl.evaluate.report.plain import plain, short, text, thinned
from wrssl.evaluate.report.selection import choose, ordered
from wrssl.evaluate.report.thumbnails import sheet

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1  # of the dictionary; ``render`` refuses others
EVALUATIONS, LOOKS = 300, 60  # points of a curve, columns of the picture of weights
SKIPPED, NOTES = 200, 50
REASON = 300  # characters


def collect(
    scenario: Scenario,
    model: nn.Module,
    verdicts: pd.DataFrame,
    history: pd.DataFrame,
    metrics: dict[str, Any],
    config: dict[str, Any],
    classes: Sequence[Any],
    weight_history: Sequence[dict[str, Any]] = (),
    *,
    test_logits: Tensor | None = None,
) -> dict[str, Any]:
    """Gather what ``render`` turns into a page.

    The page holds pictures and names of pool members, so it is as private as the pool.

    Args:
        scenario: the data that the run was made on.
        model: the returned model.
        verdicts: one row per pool member, in pool order.
        history: one row per evaluation.
        metrics: accuracies, counts and times.
        config: the settings.
        classes: the names of the classes.
        weight_history: the rows of a ``WeightHistory``.
        test_logits: the model's output for the test set, where somebody has it already.
    """
    names = [text(name) for name in np.asarray(classes).tolist()]
    weight, score = (verdicts[name].to_numpy(dtype=np.float64) for name in ("weight", "ood_score"))
    order = ordered(weight, score)
    groups = clusters.describe(verdicts, order)
    montages = [] if groups is None else [np.asarray(row["members"], dtype=np.int64) for row in groups["rows"]]
    shown = choose(order, montages)
    skipped = list(getattr(scenario, "skipped", ()))
    return {
        "format": FORMAT,
        "name": text(scenario.name),
        "classes": [short(name) for name in names],
        "sizes": {
            "labeled": len(scenario.labeled[1]),
            "pool": len(scenario.unlabeled),
            "validation": 0 if scenario.validation is None else len(scenario.validation[1]),
            "test": 0 if scenario.test is None else len(scenario.test[1]),
            "shape": list(scenario.input_shape),
        },
        "config": plain(config),
        "metrics": plain(metrics),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "history": thinned([_row(row) for row in history.to_dict("records")], EVALUATIONS),
        "weight_history": thinned([plain(row) for row in weight_history], LOOKS),
        "pool": summary(verdicts),
        "members": listed(verdicts, names, shown.members),
        "shown": {
            "members": shown.members.tolist(),
            "lowest": shown.lowest,
            "highest": shown.highest,
            "everybody": shown.everybody,
        },
        "sheet": sheet(scenario.unlabeled, shown.members.tolist()),
        "clusters": groups,
        "judged": judge_labels(scenario, model, test_logits),
        "batch_norm": compare(scenario, model, torch.tensor(weight)),
        "skipped": {
            "number": len(skipped),
            "rows": [[short(name, REASON), short(reason, REASON)] for name, reason in skipped[:SKIPPED]],
        },
        "notes": [short(note, REASON) for note in list(scenario.notes)[:NOTES]],
    }


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {text(name): plain(value) for name, value in row.items()}
