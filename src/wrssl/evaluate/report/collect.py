"""Everything that the page needs, as one dictionary that JSON can hold: the same run gives the same dictionary.

**On labels** it says which classes the model takes for which, and whether its confidence can be believed. With the rows
in ten bins B of equal width by the probability p̂ of the predicted class (a bin holds its upper end),

    ECE = Σ_B |B|/N · |accuracy(B) − mean p̂(B)|.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from wrssl.data import Scenario
from wrssl.evaluate.inference import logits_of
from wrssl.evaluate.report.batch_statistics import compare_statistics
from wrssl.evaluate.report.pool import choose_shown, describe_clusters, list_members, order_by_weight, summarize
from wrssl.evaluate.report.resemblance import describe_embedding
from wrssl.evaluate.report.text import as_text, jsonable, shortened, thinned
from wrssl.judging import PoolJudge
from wrssl.registry import METHODS, WEIGHTINGS

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1  # of the dictionary; ``render`` refuses others
EVALUATIONS, SNAPSHOTS = 300, 60  # points of a curve, columns of the picture of weights
SKIPPED, NOTES = 200, 50
REASON = 300  # characters
BINS = 10  # of confidence
MATRIX = 25  # classes, up to which there is a confusion matrix
PAIRS = 20  # confusions that are listed


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
        weight_history: how the weights were spread during training: ``step``, ``mean``, ``members`` and ``counts`` (of
            members per bin of the weight, over [0, 1]) each.
        test_logits: the model's output for the test set, where it has been computed.
    """
    names = [as_text(name) for name in np.asarray(classes).tolist()]
    weight, score = (verdicts[name].to_numpy(dtype=np.float64) for name in ("weight", "ood_score"))
    order = order_by_weight(weight, score)
    clusters = describe_clusters(verdicts, order)
    montages = [] if clusters is None else [np.asarray(row["members"], dtype=np.int64) for row in clusters["rows"]]
    shown = choose_shown(order, montages)
    members = list_members(verdicts, names, shown.members)
    skipped = list(getattr(scenario, "skipped", ()))
    return {
        "format": FORMAT,
        "name": as_text(scenario.name),
        "classes": [shortened(name) for name in names],
        "sizes": {
            "labeled": len(scenario.labeled[1]),
            "pool": len(scenario.unlabeled),
            "validation": 0 if scenario.validation is None else len(scenario.validation[1]),
            "test": 0 if scenario.test is None else len(scenario.test[1]),
            "shape": list(scenario.input_shape),
        },
        "config": jsonable(config),
        "metrics": jsonable(metrics),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "history": thinned([jsonable(row) for row in history.to_dict("records")], EVALUATIONS),
        "weight_history": thinned([jsonable(row) for row in weight_history], SNAPSHOTS),
        "pool": {**summarize(verdicts), **pool_facts(config)},
        "members": members,
        "shown": {
            "members": shown.members.tolist(),
            "lowest": shown.lowest,
            "highest": shown.highest,
        },
        **describe_embedding(scenario, order, shown.members, members["complete"]),
        "clusters": clusters,
        "judged": judge_labels(scenario, model, test_logits),
        "batch_norm": compare_statistics(scenario, model, torch.tensor(weight)),
        "skipped": {
            "number": len(skipped),
            "rows": [[shortened(name, REASON), shortened(reason, REASON)] for name, reason in skipped[:SKIPPED]],
        },
        "notes": [shortened(note, REASON) for note in list(scenario.notes)[:NOTES]],
    }


def pool_facts(config: dict[str, Any]) -> dict[str, bool]:
    """Whether the method trains on the pool, and whether the weighting itself judges which members belong."""
    method, weighting = config.get("method"), config.get("weights")
    kind: type = WEIGHTINGS.get(weighting) if weighting in WEIGHTINGS.names() else object
    judges = issubclass(kind, PoolJudge) and kind.belonging is not PoolJudge.belonging
    used = method not in METHODS.names() or METHODS.get(method).uses_unlabeled
    return {"used": used, "judged_by_weighting": used and judges}


def judge_labels(scenario: Scenario, model: nn.Module, test_logits: Tensor | None = None) -> dict[str, Any]:
    """Confusion and reliability on the test set; without one on the validation set, without that on the labeled rows.

    Args:
        scenario: the data.
        model: the one that is judged.
        test_logits: its output for the test set, where it has been computed.
    """
    for name in ("test", "validation", "labeled"):
        part = getattr(scenario, name)
        if part is not None and len(part[1]):
            break
    x, y = part
    logits = test_logits if name == "test" and test_logits is not None else logits_of(model, x)
    return {"part": name, "rows": len(y), **confusion(logits, y, scenario.num_classes), **reliability(logits, y)}


def confusion(logits: Tensor, y: Tensor, classes: int) -> dict[str, Any]:
    """Counts by true class (rows) and predicted class (columns), for few classes; the commonest confusions for any.

    A confusion is a list: how many rows, their true class, what they were taken for, how many rows that class has.
    """
    counts = torch.bincount(y * classes + logits.argmax(1), minlength=classes * classes).view(classes, classes)
    wrong = counts.clone().fill_diagonal_(0).flatten()
    commonest = wrong.argsort(descending=True, stable=True)[:PAIRS]
    pairs = [
        [int(wrong[place]), int(place) // classes, int(place) % classes, int(counts[int(place) // classes].sum())]
        for place in commonest
        if wrong[place] > 0
    ]
    matrix = counts.tolist() if classes <= MATRIX else None
    return {"right": int(counts.diagonal().sum()), "matrix": matrix, "confusions": pairs}


def reliability(logits: Tensor, y: Tensor) -> dict[str, Any]:
    """The bins and the ECE, from logits (N, C) and labels (N,)."""
    best = logits.double().softmax(1).max(1)
    p, right = best.values.numpy(), (best.indices == y).numpy()
    place = np.clip(np.ceil(p * BINS).astype(int) - 1, 0, BINS - 1)
    bins, error = [], 0.0
    for number in range(BINS):
        inside = place == number
        count = int(inside.sum())
        confidence, accuracy = (float(v[inside].mean()) if count else None for v in (p, right))
        bins.append({"count": count, "confidence": confidence, "accuracy": accuracy})
        if confidence is not None and accuracy is not None:
            error += count / len(p) * abs(accuracy - confidence)
    return {"bins": bins, "ece": error}
