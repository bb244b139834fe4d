"""An embedding that the user gives as an array, or as a pair of arrays: of the pool and of the labeled part."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wrssl.api import DataError


class GivenRows:
    """One row per entry of an array of any shape; converted to float32 when it is read, so a memory map stays on disk.

    Args:
        array: whatever numpy understands; the first axis counts the members.
    """

    def __init__(self, array: Any) -> None:
        values = np.asarray(array.detach().cpu() if isinstance(array, Tensor) else array)
        if values.dtype.kind not in "biuf":
            raise DataError(f"The embedding has type {values.dtype}; give an array of real numbers.")
        self.values = np.atleast_1d(values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | Tensor, /) -> Tensor:
        part = np.array(self.values[rows.numpy() if isinstance(rows, Tensor) else rows])
        return torch.from_numpy(part).to(torch.float32).reshape(len(part), -1)


def given_pair(pair: Any, size: int, known: int, reference: int) -> tuple[GivenRows, GivenRows]:
    """The rows of the pool and those of the examples that it is compared with, checked.

    Args:
        pair: what the user gave.
        size: members of the pool.
        known: labeled examples and the validation examples that drive the weights.
        reference: the validation examples among them; without any, the labeled ones.
    """
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise DataError("An embedding of your own is a pair: the rows of the pool, the rows of the labeled part.")
    members, examples = GivenRows(pair[0]), GivenRows(pair[1])
    labeled = known - reference if known > reference else known
    if len(members) != size or len(examples) not in (labeled, known):
        raise DataError(
            f"The embeddings have {len(members)} and {len(examples)} rows, but the pool has {size} members and there "
            f"are {labeled} labeled examples; give one row per member and one per labeled example."
        )
    widths = members[:1].shape[1], examples[:1].shape[1]
    if widths[0] != widths[1]:
        raise DataError(f"The two embeddings have {widths[0]} and {widths[1]} columns; they must be of one kind.")
    return members, examples
