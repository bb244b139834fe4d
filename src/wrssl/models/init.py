"""Initialisation from a given generator: torch's own distributions, never its global generator."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


def init_norms(model: nn.Module) -> None:
    """Batch norms start as the identity with empty statistics; this involves no randomness."""
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_parameters()


def init_default(model: nn.Module, generator: torch.Generator) -> None:
    """The distributions that torch gives to Linear and Conv2d layers by default.

    Weights and biases are uniform in ±1/sqrt(fan_in); for weights this is Kaiming's uniform with a = sqrt(5).
    """
    init_norms(model)
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.kaiming_uniform_(module.weight, a=math.sqrt(5), generator=generator)
            if module.bias is not None:
                bound = 1 / math.sqrt(module.weight[0].numel())
                nn.init.uniform_(module.bias, -bound, bound, generator=generator)
