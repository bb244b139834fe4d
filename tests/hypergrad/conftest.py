"""Small float64 problems with their own generators; nothing here reads the global one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from wrssl.hypergrad import HeadProblem, HeadRows

Arguments = tuple[Any, ...]


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def uniform(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def randn() -> Callable[..., Tensor]:
    return normal


@pytest.fixture
def head_arguments() -> Callable[..., Arguments]:
    """The nine tensors of a last layer with d inputs and C classes, in the order of ``head_hypergradient``."""

    def make(seed: int = 0, d: int = 5, C: int = 3, n_l: int = 24, n_u: int = 30, n_v: int = 21) -> Arguments:
        W, b = 0.5 * normal(C, d, seed=seed + 1), 0.5 * normal(C, seed=seed + 2)
        h_l, h_u, h_v = (normal(n, d, seed=seed + 3 + i) for i, n in enumerate((n_l, n_u, n_v)))
        targets = normal(n_u, C, seed=seed + 6).softmax(1)
        w = uniform(n_u, seed=seed + 7)
        return W, b, h_l, torch.arange(n_l) % C, h_u, targets, w, h_v, torch.arange(n_v) % C

    return make


def problem_of(
    W: Tensor, b: Tensor | None, h_l: Tensor, y_l: Tensor, h_u: Tensor, targets: Tensor, w: Tensor, h_v: Tensor,
    y_v: Tensor, **options: Any,
) -> HeadProblem:  # fmt: skip
    return HeadProblem(W, b, HeadRows(h_l, y_l), HeadRows(h_u, targets), HeadRows(h_v, y_v), w, **options)


@pytest.fixture
def head_problem() -> Callable[..., HeadProblem]:
    """A head problem from nine tensors in the order of ``head_hypergradient``, and options of ``HeadProblem``."""
    return problem_of


@pytest.fixture
def head(head_arguments: Callable[..., Arguments]) -> Callable[..., HeadProblem]:
    """A head problem; sizes and the seed as in ``head_arguments``, everything else goes to ``HeadProblem``."""

    def make(**keywords: Any) -> HeadProblem:
        sizes = {name: keywords.pop(name) for name in ("seed", "d", "C", "n_l", "n_u", "n_v") if name in keywords}
        return problem_of(*head_arguments(**sizes), **{"ridge": 0.1, **keywords})

    return make
