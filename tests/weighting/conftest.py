"""Pools and signals, as the loop would hand them to a weighting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from wrssl.api import Pool, Signal


@pytest.fixture(autouse=True)
def nobody_touches_a_global_generator(global_rng_untouched):
    """Every test of this folder runs with it."""


def three_blobs(n: int = 30, dims: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Rows in mixed order around three far corners, and the corner of each."""
    generator = torch.Generator().manual_seed(seed)
    corner = torch.randperm(n, generator=generator) % 3
    centres = 10 * torch.eye(3, dims)
    return centres[corner] + 0.1 * torch.randn(n, dims, generator=generator), corner


@pytest.fixture
def blobs() -> Callable[..., tuple[Tensor, Tensor]]:
    return three_blobs


@pytest.fixture
def make_pool() -> Callable[..., Pool]:
    """A pool whose embeddings of every kind are three blobs; ``pool.embed.asked`` lists what was asked for."""

    class Embed:
        def __init__(self, rows: Tensor) -> None:
            self.rows, self.asked = rows, list[str]()

        def __call__(self, kind: str) -> Tensor:
            self.asked.append(kind)
            return self.rows

    def make(rows: Tensor | None = None, size: int | None = None, seed: int = 3, truth: Tensor | None = None) -> Pool:
        rows = three_blobs()[0] if rows is None else rows
        return Pool(len(rows) if size is None else size, 10, Embed(rows), seed, truth)

    return make


@pytest.fixture
def make_signal() -> Callable[..., Signal]:
    def make(gradient: Sequence[float] | Tensor | None, step: int = 0) -> Signal:
        g = None if gradient is None else torch.as_tensor(gradient, dtype=torch.float32)
        n = 1 if g is None else len(g)
        return Signal(step, torch.ones(n), torch.full((n, 10), 0.1), g)

    return make
