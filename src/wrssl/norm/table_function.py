"""Weighted normalisation of a table as a function that autograd knows, in both modes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from wrssl.compiling import compiled_or_tensors
from wrssl.norm.composed import differentiable
from wrssl.norm.table import tangent


def kernel() -> ModuleType:
    """The module with ``forward`` and ``backward``: compiled where numba is there."""
    return compiled_or_tensors("wrssl.norm.table_loops", "wrssl.norm.table")


def is_table(x: Tensor) -> bool:
    """Whether there is one number per example and channel."""
    return x.dim() == 2 or x.numel() == x.shape[0] * x.shape[1]


def flat(x: Tensor) -> Tensor:
    """``x`` as (N, C), outside of any graph."""
    x = x.detach()
    return x if x.dim() == 2 else x.view(x.shape[:2])


def normalised(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, omega: Tensor, heaviest: int, eps: float
) -> tuple[Tensor, Any]:
    """The normalised ``x`` and what was kept, for nobody who differentiates."""
    parameters = [None if p is None else p.detach() for p in (gamma, beta)]
    y, kept = kernel().forward(flat(x), *parameters, omega, heaviest, eps)
    return y if x.dim() == 2 else y.view(x.shape), kept


class TableNorm(torch.autograd.Function):
    """y = γ (x − μ)/√(σ² + ε) + β with weighted μ and σ²; ``table.py`` has the formulas."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gamma: Tensor | None,
        beta: Tensor | None,
        omega: Tensor,
        heaviest: int,
        eps: float,
        used: list[Tensor],
    ) -> Tensor:
        """``used`` receives μ and σ²: not as results, since for each of those autograd keeps books."""
        y, ctx.kept = normalised(x, gamma, beta, omega, heaviest, eps)
        ctx.save_for_backward(x, gamma, beta)  # so that a change in place is noticed
        used += ctx.kept.mean, ctx.kept.variance
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """dL/dx, dL/dγ, dL/dβ."""
        x, gamma, beta = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: somebody wants derivatives of what is returned here
            return *differentiable(x, gamma, beta, ctx.kept.shares, ctx.kept.eps, grad), None, None, None, None
        needs_x = ctx.needs_input_grad[0]
        dx, G2, G1 = kernel().backward(ctx.kept, flat(grad.contiguous()), needs_x)
        own = dx if dx is None or x.dim() == 2 else dx.view(x.shape)
        return own, None if gamma is None else G2, None if beta is None else G1, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *along: Any) -> Tensor:
        """ẏ."""
        dx = None if along[0] is None else along[0].view(ctx.kept.x.shape)
        out = tangent(ctx.kept, dx, *along[1:3])
        return out if along[0] is None or along[0].dim() == 2 else out.view(along[0].shape)
