"""Weighted normalization from tensor operations: the definition, and every derivative of it by autograd."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from wrssl.norm.moments import Part, moments, shares, unbiased


class Normalized(NamedTuple):
    """A normalized batch, and what the running statistics move toward.

    Args:
        y: the batch.
        mean: the mean that was used.
        variance: the variance that was used.
        counted: 1 for a batch that counts, 0 for one whose weights were not usable.
        correction: the factor that makes the variance unbiased.
    """

    y: Tensor
    mean: Tensor
    variance: Tensor
    counted: Tensor | int
    correction: float = 1.0


def per_channel(x: Tensor) -> tuple[int, ...]:
    """The shape in which one number per channel broadcasts to ``x`` (N, C, …)."""
    return (1, -1) + (1,) * (x.dim() - 2)


def standardize(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, mean: Tensor, variance: Tensor, eps: float
) -> Tensor:
    """γ (x − μ) / √(σ² + ε) + β, channel by channel."""
    shape = per_channel(x)
    y = (x - mean.view(shape)) * torch.rsqrt(variance + eps).view(shape)
    if gamma is not None:
        y = y * gamma.view(shape)
    return y if beta is None else y + beta.view(shape)


def composed(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    w: Tensor,
    running: tuple[Tensor, Tensor] | None,
    eps: float,
    part: Part | None = None,
) -> Normalized:
    """Normalize ``x`` (N, C, …) with weights ``w`` (N,), or without usable weights with the ``running`` statistics.

    Where ``x`` is part of a batch, ``w`` has the weights of the whole batch.
    """
    positions = math.prod(x.shape[2:])
    share, usable = shares(w, positions)
    if running is None:  # the only other statistics are those without weights
        share = torch.where(usable, share, 1 / len(share))
    mean, variance = moments(x, share) if part is None else moments(x, share[part.rows], part.add)
    if running is not None:
        # torch.where instead of a Python branch: no host synchronization, and gradients of the unused side are zero.
        mean, variance = torch.where(usable, mean, running[0]), torch.where(usable, variance, running[1])
    y = standardize(x, gamma, beta, mean, variance, eps)
    return Normalized(y, mean.detach(), unbiased(variance, share, positions).detach(), usable)


def differentiable(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, omega: Tensor, eps: float, grad: Tensor
) -> list[Tensor | None]:
    """The gradients of x, γ and β as functions of x, γ, β and ``grad``, through the composed form.

    Computed from aliases: if γ depends on x, autograd would otherwise count that path twice in the gradient of x.
    """
    x = x.view_as(x)
    gamma, beta = (None if p is None else p.view_as(p) for p in (gamma, beta))
    wanted = [p for p in (x, gamma, beta) if p is not None and p.requires_grad]
    y = standardize(x, gamma, beta, *moments(x, omega * math.prod(x.shape[2:])), eps)
    gradients = iter(torch.autograd.grad(y, wanted, grad, create_graph=True))
    return [next(gradients) if p is not None and p.requires_grad else None for p in (x, gamma, beta)]
