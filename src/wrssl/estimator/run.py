"""Training and asking the network: what the classifier does once X and y are rows and labels."""

from __future__ import annotations

import copy
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from wrssl.data import Scenario
from wrssl.estimator.labels import Labels
from wrssl.evaluate import logits_of
from wrssl.training import fit
from wrssl.training.result import Result

if TYPE_CHECKING:
    from wrssl.estimator.classifier import WRSSLClassifier


def train(settings: WRSSLClassifier, rows: NDArray[Any], y: Labels, known: NDArray[np.bool_]) -> Result:
    """``wrssl.fit``; where every row has a label, on the labels alone.

    Args:
        settings: the classifier, for its options.
        rows: all of them, encoded.
        y: their labels.
        known: which rows have one.
    """
    labeled, pool = (rows[known], y[known]), np.flatnonzero(~known)
    some = len(pool) > 0
    # A scenario has a pool; without one the labelled rows stand in for it, and nothing is said about them afterwards.
    scenario = Scenario(labeled, rows[pool], ids=pool.tolist()) if some else Scenario(labeled, rows)
    result = fit(
        scenario,
        model=settings.model,
        method=settings.method if some else "supervised",
        weights=settings.weights if some else "none",
        bn=settings.bn,
        steps=settings.steps,
        seed=draw_seed(settings.random_state),
        device=settings.device,
        progress=settings.verbose > 0,
    )
    if not some:
        result.weights, result.verdicts = result.weights[:0], result.verdicts.iloc[:0]
    return result


def draw_seed(random_state: Any) -> int:
    """A number is the seed itself; a ``RandomState``, or None for numpy's global one, is asked for a new one."""
    source = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(source.randint(np.iinfo(np.int32).max))


def probabilities(result: Result, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Of each class, ``(N, C)``.

    In float64 for tables: sums in float32 differ with the number of rows, and a row should get the same answer
    whatever else is asked about.
    """
    if rows.ndim == 4:
        return result.predict_proba(rows)
    model = copy.deepcopy(result.model).double()
    p: NDArray[np.float64] = logits_of(model, torch.from_numpy(rows).double()).double().softmax(1).numpy()
    return p
