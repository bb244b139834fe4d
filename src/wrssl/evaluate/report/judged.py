"""How the model does on labels: which classes it takes for which, and whether its confidence can be believed.

With the rows in ten bins B of equal width by the probability p̂ of the predicted class (a bin holds its upper end),

    ECE = Σ_B |B|/N · |accuracy(B) − mean p̂(B)|.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wrssl.data import Scenario
from wrssl.evaluate.infer import logits_of

BINS = 10
MATRIX = 25  # classes, up to which there is a confusion matrix
PAIRS = 20  # confusions that are listed


def judge_labels(scenario: Scenario, model: nn.Module, test_logits: Tensor | None = None) -> dict[str, Any]:
    """On the test set; without one on the validation set, and without that on the labelled rows.

    Args:
        scenario: the data.
        model: what is judged.
        test_logits: of the test set, where somebody has them already.
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
    """The bins and the ECE."""
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
