"""Random inputs of the methods, drawn from the step's own generators."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.api import Context


def gaussian_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """N(0, I) in the shape of ``x``; drawn on the generator's device, so that a run does not depend on x's."""
    return torch.randn(x.shape, generator=generator, dtype=x.dtype, device=generator.device).to(x.device)


def noisy(x: Tensor, context: Context) -> Tensor:
    """Noise added: x + n with n ~ N(0, σ²); x itself where the scenario prescribes no noise."""
    return x + context.noise * gaussian_like(x, context.augment) if context.noise else x
