"""The same normalisation for a table: a row for each example, or for each position of images with channels innermost.

One number per example and channel is so small that the number of calls is its cost. Where examples have several rows,
ω_i is what each row of example i counts, and the sums run over all rows.

    μ = r + Σ ω_i (x_i − r),   d = x − μ,   σ² = Σ ω_i d_i²,   y = A d + β,   A = γ/ς,   ς = √(σ² + ε)
    dL/dx_i = A (g_i − ω_i (G1 + G2 d_i/ς)),   G1 = Σ g = dL/dβ,   G2 = Σ g d/ς = dL/dγ

    ẏ = A ḋ + Ȧ d + β̇,   ḋ = ẋ − Σ ω_i ẋ_i,   (σ²)˙ = 2 Σ ω_i d_i ḋ_i,   Ȧ = γ̇/ς − γ (σ²)˙/(2 ς³)

r is the heaviest example: what is far from zero is subtracted before anything is rounded. ``table_loops.py`` has
forward and backward compiled; these run where numba is not installed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Kept(NamedTuple):
    """What the derivatives need; none of these tensors is part of a graph.

    Args:
        x: the table, (N·S, C): S rows for each of N examples.
        gamma: γ.
        omega: what each row of an example counts, (N,).
        mean: μ.
        variance: σ².
        eps: ε.
    """

    x: Tensor
    gamma: Tensor | None
    omega: Tensor
    mean: Tensor
    variance: Tensor
    eps: float

    @property
    def shares(self) -> Tensor:
        """What each row counts, (N·S,)."""
        return share_rows(self.omega, self.x)


def share_rows(omega: Tensor, x: Tensor) -> Tensor:
    """ω of each row of ``x``."""
    return omega if len(omega) == len(x) else omega.repeat_interleave(len(x) // len(omega))


def forward(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, omega: Tensor, heaviest: int, eps: float
) -> tuple[Tensor, Kept]:
    """The normalised ``x``, with μ and σ² among what is kept."""
    shares, reference = share_rows(omega, x), x[heaviest * (len(x) // len(omega))]
    d = x - reference
    shift = torch.mv(d.t(), shares)
    d.sub_(shift)
    variance = torch.mv((d * d).t(), shares)
    A = torch.rsqrt(variance + eps)
    if gamma is not None:
        A.mul_(gamma)
    y = d.mul_(A) if beta is None else d.mul_(A).add_(beta)
    return y, Kept(x, gamma, omega, reference + shift, variance, eps)


def backward(kept: Kept, g: Tensor, needs_x: bool) -> tuple[Tensor | None, Tensor, Tensor]:
    """dL/dx, G2 and G1; dL/dx is None where nobody needs it."""
    d, invstd = kept.x - kept.mean, torch.rsqrt(kept.variance + kept.eps)
    G1, G2 = g.sum(0), (g * d).sum(0).mul_(invstd)
    if not needs_x:
        return None, G2, G1
    common = d.mul_(G2 * invstd).add_(G1)
    A = invstd if kept.gamma is None else kept.gamma * invstd
    return torch.addcmul(g, common, kept.shares.unsqueeze(1), value=-1).mul_(A), G2, G1


def tangent(kept: Kept, dx: Tensor | None, d_gamma: Tensor | None, d_beta: Tensor | None) -> Tensor:
    """ẏ from the tangents of x, γ and β; None stands for zero."""
    (x, gamma, _, mean, variance, eps), omega = kept, kept.shares
    invstd = torch.rsqrt(variance + eps)
    d, A = x - mean, invstd if gamma is None else gamma * invstd
    d_A = torch.zeros_like(A) if d_gamma is None else d_gamma * invstd
    out = torch.zeros_like(x)
    if dx is not None:
        centred = dx - torch.mv(dx.t(), omega)
        d_A = d_A - A * invstd.square() * torch.mv((d * centred).t(), omega)
        out = centred * A
    out = torch.addcmul(out, d, d_A)
    return out if d_beta is None else out + d_beta
