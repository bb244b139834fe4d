"""Random augmentations, drawn from the step's own generators; how strong they are is up to the scenario."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.api import Context


def gaussian_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """N(0, I) in the shape of ``x``; drawn on the generator's device, so that a run does not depend on x's."""
    return torch.randn(x.shape, generator=generator, dtype=x.dtype, device=generator.device).to(x.device)


def with_noise(x: Tensor, context: Context) -> Tensor:
    """X + n with n ~ N(0, σ²); x itself where the scenario prescribes no noise."""
    return x + context.noise * gaussian_like(x, context.augment) if context.noise else x


def weak(x: Tensor, context: Context) -> Tensor:
    """The weak augmentation, then the noise: small changes that keep the class."""
    known = context.augmentation
    return with_noise(x if known is None else known.weak(x, context.augment), context)


def strong(x: Tensor, context: Context) -> Tensor:
    """The strong augmentation, then the noise: large changes after which a person still recognizes the class."""
    known = context.augmentation
    return with_noise(x if known is None else known.strong(x, context.augment), context)
