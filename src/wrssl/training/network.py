"""From a model's name, or a user's module, to a network that the loop can run."""

from __future__ import annotations

import copy
from functools import partial

import torch
from torch import nn

from wrssl.api import OptionError
from wrssl.data import Scenario, prepare
from wrssl.fast import accelerate
from wrssl.models import build_model, split
from wrssl.norm import convert_batchnorm, use_native_kernels
from wrssl.training.passes import PolicyNet
from wrssl.training.randomness import stream


def build_network(
    scenario: Scenario,
    model: str | nn.Module,
    bn: str,
    head: str | None,
    seed: int,
    device: torch.device,
    fast: bool = True,
) -> PolicyNet:
    """The model with weighted batch norm, split into backbone and head; a module of the user is copied first."""
    if isinstance(model, str):
        own = build_model(model, scenario.input_shape, scenario.num_classes, stream(seed, "initialisation"))
    else:
        own = copy.deepcopy(model)
    own = convert_batchnorm(own).to(device)
    use_native_kernels(own, fast)
    parts = split(own, prepare(scenario.labeled[0][:2]).to(device), head)
    if parts.head.out_features != scenario.num_classes:
        raise OptionError(
            f"The model gives {parts.head.out_features} logits but the labels have {scenario.num_classes} classes; "
            f"end the model with Linear(..., {scenario.num_classes})."
        )
    return PolicyNet(parts, bn, partial(accelerate, device=device) if fast else None)


def find_device(device: str | torch.device | None) -> torch.device:
    """The device of that name; None is a GPU where there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"The device {str(device)!r} is not there; use device='cpu' or leave it out.") from error
    return place
