"""The same normalisation for one number per example and channel, (N, C): so small that the number of calls is its cost.

    μ = r + Σ ω_i (x_i − r),   d = x − μ,   σ² = Σ ω_i d_i²,   y = A d + β,   A = γ/ς,   ς = √(σ² + ε)
    dL/dx_i = A (g_i − ω_i (G1 + G2 d_i/ς)),   G1 = Σ g = dL/dβ,   G2 = Σ g d/ς = dL/dγ

    ẏ = A ḋ + Ȧ d + β̇,   ḋ = ẋ − Σ ω_i ẋ_i,   (σ²)˙ = 2 Σ ω_i d_i ḋ_i,   Ȧ = γ̇/ς − γ (σ²)˙/(2 ς³)

r is the heaviest example: what is far from zero is subtracted before anything is rounded.
"""

from __future__ import annotations

import torch
from torch import Tensor


def forward(
    x: Tensor, gamma: Tensor | None, beta: Tensor | None, omega: Tensor, heaviest: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """y, μ and σ² of ``x`` (N, C)."""
    reference = x[heaviest]
    d = x - reference
    shift = torch.mv(d.t(), omega)
    d.sub_(shift)
    variance = torch.mv((d * d).t(), omega)
    A = torch.rsqrt(variance + eps)
    if gamma is not None:
        A.mul_(gamma)
    return d.mul_(A) if beta is None else d.mul_(A).add_(beta), reference + shift, variance


def backward(
    g: Tensor, x: Tensor, gamma: Tensor | None, omega: Tensor, mean: Tensor, invstd: Tensor, needs_x: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    """dL/dx, G2 and G1; dL/dx is None where nobody needs it."""
    d = x - mean
    G1, G2 = g.sum(0), (g * d).sum(0).mul_(invstd)
    if not needs_x:
        return None, G2, G1
    common = d.mul_(G2 * invstd).add_(G1)
    A = invstd if gamma is None else gamma * invstd
    return torch.addcmul(g, common, omega.unsqueeze(1), value=-1).mul_(A), G2, G1


def tangent(
    x: Tensor,
    gamma: Tensor | None,
    omega: Tensor,
    mean: Tensor,
    invstd: Tensor,
    along: tuple[Tensor | None, Tensor | None, Tensor | None],
) -> Tensor:
    """ẏ from the tangents of x, γ and β; None stands for zero."""
    dx, d_gamma, d_beta = along
    d, A = x - mean, invstd if gamma is None else gamma * invstd
    d_A = torch.zeros_like(A) if d_gamma is None else d_gamma * invstd
    out = torch.zeros_like(x)
    if dx is not None:
        centred = dx - torch.mv(dx.t(), omega)
        d_A = d_A - A * invstd.square() * torch.mv((d * centred).t(), omega)
        out = centred * A
    out = torch.addcmul(out, d, d_A)
    return out if d_beta is None else out + d_beta
