"""Random numbers, one per example, from the given generator and from nowhere else."""

from __future__ import annotations

import torch
from torch import Tensor


def uniform(shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Numbers in [0, 1), where ``like`` lives.

    They are drawn on the generator's device and always in float64, so that neither the device nor the number type of
    a batch decides what happens to it.
    """
    return torch.rand(shape, generator=generator, dtype=torch.float64, device=generator.device).to(like.device)


def whole(bound: int, shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Whole numbers 0 … bound − 1, equally likely, where ``like`` lives."""
    return torch.randint(bound, shape, generator=generator, device=generator.device).to(like.device)
