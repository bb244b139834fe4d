"""Whatever holds the user's rows (array, tensor, list, Dataset) becomes one CPU tensor, without needless copies."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from wrssl.api import DataError


def to_rows(data: Any, part: str) -> Tensor:
    """The inputs of one part as a ``uint8`` or ``float32`` CPU tensor, first axis = examples.

    ``uint8`` and ``float32`` memory is shared, never copied, so a memory-mapped array stays on disk; every other
    number type becomes ``float32``.

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
            return _finish_tensor(torch.stack(list(data)), part)
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
    return data if data.dtype in (torch.uint8, torch.float32) else data.to(torch.float32)


def _finish_array(data: npt.NDArray[Any], part: str) -> Tensor:
    if data.dtype.kind not in "biuf":
        raise DataError(
            f"The {part} data has type {data.dtype}; convert it to numbers (float32, or uint8 for images) first."
        )
    if data.dtype not in (np.dtype(np.uint8), np.dtype(np.float32)):
        with np.errstate(over="ignore"):  # too large for float32 becomes inf, which the NaN/inf check reports
            data = data.astype(np.float32)
    if any(stride < 0 for stride in data.strides):
        data = np.ascontiguousarray(data)  # torch has no negative strides
    with warnings.catch_warnings():
        # A read-only array (a memory map) is fine here: nothing in this package writes into a scenario.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(data)
