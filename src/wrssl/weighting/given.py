"""An embedding that the user gives as an array."""

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
