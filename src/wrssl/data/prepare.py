"""The one place where stored values become network inputs."""

from __future__ import annotations

import torch
from torch import Tensor


def prepare(batch: Tensor) -> Tensor:
    """Turn a stored batch into what a network sees.

    ``uint8`` values become x / 127.5 − 1, so that [0, 255] maps to [−1, 1]; floats are taken as they are.

    Args:
        batch: rows of a scenario, any shape.

    Returns:
        A float tensor of the same shape; a float batch is returned itself, not a copy.
    """
    if batch.dtype == torch.uint8:
        return batch.to(torch.float32).div_(127.5).sub_(1.0)
    return batch
