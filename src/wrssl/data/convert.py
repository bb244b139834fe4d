"""Whatever holds the user's rows and labels (array, tensor, list, Dataset) becomes CPU tensors without needless copies.

Rows keep ``uint8``, ``float32`` and ``float16`` and share their memory; every other number type becomes ``float32``.
Labels of any sortable kind become 0 … C−1, and the original ones are kept.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from wrssl.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

LABELED, POOL, VALIDATION, TEST = "labeled", "unlabeled", "validation", "test"  # the parts, as messages name them
KEPT = (torch.uint8, torch.float32, torch.float16)
Labels: TypeAlias = npt.NDArray[Any]
# What a user may pass as inputs or labels, and as inputs with labels.
Rows: TypeAlias = "npt.ArrayLike | Tensor | Sequence[Any] | Dataset[Any] | pd.DataFrame"
Pairs: TypeAlias = "tuple[Rows, Rows | pd.Series] | list[Any] | Dataset[Any]"


def to_rows(data: Rows, part: str) -> Tensor:
    """The inputs of one part as a ``uint8``, ``float32`` or ``float16`` CPU tensor, first axis = examples.

    Memory of these types is shared, never copied, so a memory-mapped array stays on disk; every other number type
    becomes ``float32``.

    Args:
        data: array, tensor, nested list, data frame, or map-style Dataset (items x or (x, anything)).
        part: the name used in error messages.

    Returns:
        The tensor.
    """
    if isinstance(data, Dataset):
        return read_dataset(data, part)[0]
    if isinstance(data, Tensor):
        return _finish_tensor(data, part)
    if hasattr(data, "toarray"):
        raise DataError(f"The {part} data is a sparse matrix; pass its .toarray() instead.")
    if isinstance(data, Sequence) and len(data) and all(isinstance(item, Tensor) for item in data):
        try:
            return _finish_tensor(torch.stack([*data]), part)
        except RuntimeError as error:
            raise DataError(f"The rows of the {part} data differ in shape; bring them to one shape.") from error
    return _finish_array(_as_array(data, part), part)


def read_dataset(data: Dataset[Any], part: str) -> tuple[Tensor, list[Any] | None]:
    """All items of a map-style Dataset: the inputs, and the second entries where every item has one."""
    if isinstance(data, TensorDataset):
        first = _finish_tensor(data.tensors[0], part)
        return first, data.tensors[1].tolist() if len(data.tensors) > 1 else None
    if isinstance(data, IterableDataset) or not hasattr(data, "__len__"):
        raise DataError(f"The {part} Dataset has no length; pass a map-style Dataset, with __len__ and __getitem__.")
    size = len(data)
    if size == 0:
        raise DataError(f"The {part} Dataset is empty; give it at least one item.")
    rows: Tensor | None = None
    seconds: list[Any] = []
    for index in range(size):
        item = data[index]
        # A list of plain numbers is a row; any other list or tuple is (x, …).
        pair = isinstance(item, (tuple, list)) and not isinstance(next(iter(item), None), (int, float))
        value = _item(item[0] if pair else item, part)
        if rows is None:
            rows = torch.empty((size, *value.shape), dtype=value.dtype)
        if value.shape != rows.shape[1:]:
            raise DataError(
                f"Item {index} of the {part} Dataset has shape {tuple(value.shape)} and item 0 has "
                f"{tuple(rows.shape[1:])}; bring all items to one shape."
            )
        rows[index] = value
        if pair and len(item) > 1:
            second = item[1]
            seconds.append(second.item() if isinstance(second, (Tensor, np.generic)) else second)
    assert rows is not None  # size > 0
    return rows, seconds if len(seconds) == size else None


def _item(value: Any, part: str) -> Tensor:
    if isinstance(value, Tensor):
        return _finish_tensor(value, part)
    array = _as_array(value, part)
    if hasattr(value, "getbands"):  # a PIL image: (H, W) or (H, W, C)
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    return _finish_array(array, part)


def _as_array(data: Any, part: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(data)
    except ValueError as error:
        raise DataError(f"The rows of the {part} data differ in shape; bring them to one shape.") from error


def _finish_tensor(data: Tensor, part: str) -> Tensor:
    if data.is_complex():
        raise DataError(f"The {part} data is complex; pass real numbers, for example real and imaginary part.")
    data = data.detach().cpu()
    return data if data.dtype in KEPT else data.to(torch.float32)


def _finish_array(data: npt.NDArray[Any], part: str) -> Tensor:
    if data.dtype.kind not in "biuf":
        raise DataError(
            f"The {part} data has type {data.dtype}; convert it to numbers (float32, or uint8 for images) first."
        )
    if data.dtype not in (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float16)):
        with np.errstate(over="ignore"):  # too large for float32 becomes inf, which the NaN/inf check reports
            data = data.astype(np.float32)
    if any(stride < 0 for stride in data.strides):
        data = np.ascontiguousarray(data)  # torch has no negative strides
    with warnings.catch_warnings():
        # A read-only array (a memory map) is fine here: nothing in this package writes into a scenario.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(data)


def _as_labels(y: Rows, rows: int, part: str) -> Labels:
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
    """Whether a label written to a file is the same when it is read again."""
    if isinstance(value, str):
        return value.isprintable() or value.encode("utf-8", "replace").decode("utf-8") == value
    return isinstance(value, (bool, int, np.integer, np.bool_)) or (
        isinstance(value, (float, np.floating)) and math.isfinite(value)
    )


def fit_classes(y: Rows, rows: int) -> tuple[Labels, Tensor]:
    """The sorted classes of the labeled part, and its labels as positions in them.

    Args:
        y: one label per row.
        rows: number of labeled rows.

    Returns:
        The original labels in order, shape ``(C,)``, and an int64 tensor of shape ``(rows,)``.
    """
    classes, codes = _unique(_as_labels(y, rows, LABELED), LABELED)
    if len(classes) < 2:
        raise DataError(f"All labels are {classes[:1].tolist()[0]!r}; give labeled examples of at least two classes.")
    return classes, torch.from_numpy(codes.astype(np.int64))


def apply_classes(y: Rows, rows: int, classes: Labels, part: str) -> Tensor:
    """The labels of another part as positions in ``classes``; a class that is not there is a ``DataError``."""
    values, inverse = _unique(_as_labels(y, rows, part), part)
    position = {label: index for index, label in enumerate(classes.tolist())}
    unknown = [value for value in values.tolist() if value not in position]
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        raise DataError(
            f"The {part} part has the class {unknown[0]!r}{more}, which no labeled example has; "
            "label examples of it or remove those rows."
        )
    codes = np.array([position[value] for value in values.tolist()], dtype=np.int64)
    return torch.from_numpy(codes[inverse])
