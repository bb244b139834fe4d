"""Remove from a score what is merely the class of a row: a class that is frequent in the pool is not foreign.

Where one class is five times as frequent in the pool as among the labels, all of its members look like something that
the pool has and the labels do not. That is a shift of class frequencies and says nothing about belonging, so rows are
compared with references of their own class. With ĉ(x) the class by a ridge multinomial regression on the reference (out
of fold, like all scores), the scores of the n_c references that are predicted as class c, and the median m over all,

    z ← z − offset_ĉ(x),     offset_c = (Σ_{references with ĉ = c} (z − m)) / (n_c + 10).

Ten pseudo-references keep the offset of a class with few references near 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.kinds import Labels, Matrix

Classifier: TypeAlias = Callable[[Matrix], NDArray[np.float64]]
RIDGE = 1e-2
PSEUDO = 10.0


def classifier(rows: Matrix, labels: Labels, classes: int) -> Classifier:
    """Fit a function from rows (n, d) to the logits of every class (n, classes); −∞ for a class without a label."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    present = np.unique(labels)
    if len(present) < 2:
        only = np.where(np.arange(classes) == present[0], 0.0, -np.inf)
        return lambda rows: np.tile(only, (len(rows), 1))
    model = LogisticRegression(C=1 / (RIDGE * len(rows)), max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, labels)

    def logits(rows: Matrix) -> NDArray[np.float64]:
        z = model.decision_function(rows).astype(np.float64)
        every_class = np.full((len(rows), classes), -np.inf)
        every_class[:, present] = np.stack([-z / 2, z / 2], axis=1) if z.ndim == 1 else z
        return every_class

    return logits


def offsets(scores: NDArray[np.float64], predicted: Labels, classes: int) -> NDArray[np.float64]:
    """The offset of each class, from the scores of the references and their predicted classes."""
    total = np.bincount(predicted, weights=scores - np.median(scores), minlength=classes)
    found: NDArray[np.float64] = total / (np.bincount(predicted, minlength=classes) + PSEUDO)
    return found
