"""MixUp (Zhang et al., 2018: "mixup: Beyond Empirical Risk Minimization"): a row becomes a mixture of two."""

from __future__ import annotations

import torch
from scipy.special import betaincinv
from torch import Tensor


def beta(alpha: float, size: int, generator: torch.Generator) -> Tensor:
    """Draws of Beta(α, α), by the inverse of its distribution function: torch's sampler reads the global generator."""
    uniform = torch.rand(size, generator=generator, dtype=torch.float64, device=generator.device)
    return torch.from_numpy(betaincinv(alpha, alpha, uniform.cpu().numpy()))


def blend(rows: Tensor, partner: Tensor, share: Tensor) -> Tensor:
    """share_i · row_i + (1 − share_i) · row_partner(i), for rows of any shape."""
    part = share.to(rows).view(-1, *[1] * (rows.dim() - 1))
    return part * rows + (1 - part) * rows[partner]
