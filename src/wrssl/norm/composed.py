"""Weighted normalisation from tensor operations: the definition, and every derivative of it by autograd."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from wrssl.norm.moments import moments, shares, unbiased
from wrssl.norm.part import Part


class Normalised(NamedTuple):
    """A normalised batch, and what the running statistics move toward.

    Args:
        y: the batch.
        mean: the mean that was used.
        variance: the variance that was used.
        counted: 1 for a batch that counts, 0 for one whose weights were not usable.
        correction: what makes the variance unbiased.
    """

    y: Tensor
    mean: Tensor
    variance: Tensor
    counted: Tensor | int
    correction: float = 1.0


def per_channel(x: Tensor) -> tuple[int, ...]:
    """The shape in which one number per channel meets ``x`` (N, C, …)."""
    return (1, -1) + (1,) * (x.dim() - 2)


def standardise(
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
) -> Normalised:
    """Normalise ``x`` (N, C, …) with weights ``w`` (N,), or without usable weights with the ``running`` statistics.

    Where ``x`` is part of a batch, ``w`` has the weights of the whole.
    """
    positions = math.prod(x.shape[2:])
    share, usable = shares(w, positions)
    if running is None:  # nothing to fall back on but the statistics without weights
        share = torch.where(usable, share, 1 / len(share))
    mean, variance = moments(x, share) if part is None else moments(x, share[part.rows], part.add)
    if running is not None:
        # torch.where instead of a Python branch: no host synchronisation, and gradients of the unused side are zero.
        mean, variance = torch.where(usable, mean, running[0]), torch.where(usable, variance, running[1])
    y = standardise(x, gamma, beta, mean, variance, eps)
    return Normalised(y, mean.detach(), unbiased(variance, share, positions).detach(), usable)


def differentiable(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, omega: Tensor, eps: float, grad: Tensor
) -> list[Tensor | None]:
    """The gradients of x, γ and β as functions of x, γ, β and ``grad``, through the composed form.

    Aliases, not the tensors themselves: were γ computed from x, the gradient of x would count that way twice.
    """
    x = x.view_as(x)
    gamma, beta = (None if p is None else p.view_as(p) for p in (gamma, beta))
    wanted = [p for p in (x, gamma, beta) if p is not None and p.requires_grad]
    y = standardise(x, gamma, beta, *moments(x, omega * math.prod(x.shape[2:])), eps)
    gradients = iter(torch.autograd.grad(y, wanted, grad, create_graph=True))
    return [next(gradients) if p is not None and p.requires_grad else None for p in (x, gamma, beta)]
