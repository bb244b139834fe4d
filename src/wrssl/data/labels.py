"""Labels of any sortable kind become 0 … C−1; the original ones are kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wrssl.api import DataError

Labels = npt.NDArray[Any]


def _as_labels(y: Any, rows: int, part: str) -> Labels:
    labels = np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y)
    if labels.ndim != 1:
        advice = "y.argmax(1) of one-hot rows" if labels.ndim == 2 and labels.shape[1] > 1 else "y.ravel()"
        raise DataError(f"The {part} labels have shape {labels.shape}; pass one label per row, for example {advice}.")
    if len(labels) != rows:
        raise DataError(f"The {part} part has {rows} rows and {len(labels)} labels; pass one label per row.")
    if labels.dtype.kind not in "biufUO":
        raise DataError(
            f"The {part} labels have type {labels.dtype}; pass numbers or strings, for example y.astype(str)."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise DataError(f"Label {row} of the {part} part is {labels[row]}; remove that row or give it a class.")
    return labels.astype(np.float64) if labels.dtype.kind == "f" else labels  # as files keep them


def _unique(labels: Labels, part: str) -> tuple[Labels, npt.NDArray[np.int64]]:
    try:
        values, inverse = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise DataError(
            f"The {part} labels cannot be sorted (mixed types or None); pass only numbers or only strings."
        ) from error
    for value in values.tolist():
        if not _storable(value):
            raise DataError(
                f"The {part} part has the label {value!r}; pass only numbers or only strings of Unicode text."
            )
    return values, inverse.reshape(-1)


def _storable(value: Any) -> bool:
    """Whether a label is the same after it was written to a file and read again."""
    if isinstance(value, str):
        return value.isprintable() or value.encode("utf-8", "replace").decode("utf-8") == value
    return isinstance(value, (bool, int, np.integer, np.bool_)) or (
        isinstance(value, (float, np.floating)) and math.isfinite(value)
    )


def fit_classes(y: Any, rows: int) -> tuple[Labels, Tensor]:
    """The sorted classes of the labelled part, and its labels as positions in them.

    Args:
        y: one label per row.
        rows: number of labelled rows.

    Returns:
        The original labels in order, shape ``(C,)``, and an int64 tensor of shape ``(rows,)``.
    """
    classes, codes = _unique(_as_labels(y, rows, "labelled"), "labelled")
    if len(classes) < 2:
        raise DataError(f"All labels are {classes[:1].tolist()[0]!r}; give labelled examples of at least two classes.")
    return classes, torch.from_numpy(codes.astype(np.int64))


def apply_classes(y: Any, rows: int, classes: Labels, part: str) -> Tensor:
    """The labels of another part as positions in ``classes``; a class that is not there is a ``DataError``."""
    values, inverse = _unique(_as_labels(y, rows, part), part)
    position = {label: index for index, label in enumerate(classes.tolist())}
    unknown = [value for value in values.tolist() if value not in position]
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        raise DataError(
            f"The {part} part has the class {unknown[0]!r}{more}, which no labelled example has; "
            "label examples of it or remove those rows."
        )
    codes = np.array([position[value] for value in values.tolist()], dtype=np.int64)
    return torch.from_numpy(codes[inverse])
