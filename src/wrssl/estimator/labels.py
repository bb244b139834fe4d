"""Which rows have a label: −1, as a number, marks those that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from wrssl.api import DataError

UNLABELED = -1
Labels = NDArray[Any]


class LabelError(DataError, ValueError):
    """The labels cannot be used; a ValueError too, since that is what scikit-learn's users and tools expect."""


def check_labels(y: Any) -> Labels:
    """One label per row, as an array of its own."""
    if y is None:
        raise LabelError("This classifier requires y to be passed, but the target y is None; mark rows without by -1.")
    labels: Labels = np.array(column_or_1d(y, warn=True))
    assert_all_finite(labels, input_name="y")
    return labels


def is_labeled(y: Labels) -> NDArray[np.bool_]:
    """True where there is a label.

    Next to names of classes −1 needs an array of objects; numpy would turn it into the text "-1", which is refused
    since it may be meant as a class.
    """
    texts = y.dtype.kind in "US"
    if any(label in ("-1", b"-1") for label in (np.unique(y) if texts else y if y.dtype.kind == "O" else ())):
        raise LabelError(
            "y holds the text '-1'; keep -1 a number, for example by np.array([\"cat\", -1], dtype=object), or name "
            "that class otherwise."
        )
    if texts:
        return np.ones(len(y), dtype=np.bool_)
    if y.dtype.kind != "O":
        return np.asarray(y != UNLABELED, dtype=np.bool_)
    return np.array([not (isinstance(label, (int, float, np.number)) and label == UNLABELED) for label in y], np.bool_)


def classes_of(y: Labels) -> Labels:
    """The classes of the labeled rows, sorted; there must be two of them at least."""
    if len(y) == 0:
        raise LabelError("All rows are unlabeled (y is -1 everywhere); give labels of at least two classes.")
    try:
        check_classification_targets(y)
        classes: Labels = np.unique(y)
    except TypeError as error:
        raise LabelError("The labels mix numbers and text; use only one of them, and -1 for no label.") from error
    if len(classes) < 2:
        raise LabelError(
            f"The labels have only one class, {classes.tolist()[0]!r}; give labeled rows of at least two classes."
        )
    return classes
