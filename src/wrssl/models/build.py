"""Networks by name. A new one is a file of its own and one line in the registry below."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from wrssl.api import ModelError, OptionError
from wrssl.models.init import init_default
from wrssl.models.lenet import LeNet
from wrssl.models.mlp import MLP
from wrssl.models.small_cnn import SmallCNN
from wrssl.models.wide_resnet import WideResNet, init_wide_resnet

_SUFFIX = "-nobn"


@dataclass(frozen=True)
class _Entry:
    make: Callable[[tuple[int, ...], int, bool], nn.Module]  # input shape, number of classes, batch norm
    init: Callable[[nn.Module, torch.Generator], None] = init_default
    needs_images: bool = True


_MODELS: dict[str, _Entry] = {
    "mlp": _Entry(lambda shape, c, bn: MLP(math.prod(shape), c, bn), needs_images=False),
    "lenet": _Entry(lambda shape, c, bn: LeNet(_image(shape), c, bn)),
    "small_cnn": _Entry(lambda shape, c, bn: SmallCNN(_image(shape), c, bn)),
    "wrn-28-2": _Entry(lambda shape, c, bn: WideResNet(shape[0], c, bn), init=init_wide_resnet),
}


def list_models() -> list[str]:
    """Every name that ``build_model`` knows."""
    names = ["auto", *_MODELS]
    return [*names, *(name + _SUFFIX for name in names)]


def build_model(name: str, input_shape: Sequence[int], num_classes: int, generator: torch.Generator) -> nn.Module:
    """Build and initialise a network; its last layer is an ``nn.Linear`` that gives logits.

    All randomness comes from ``generator``; torch's global generator is neither read nor seeded.

    Args:
        name: one of ``list_models()``. ``"auto"`` takes ``mlp`` for tables, ``lenet`` for one-channel images of
            28x28 or 32x32, and ``small_cnn`` for all other images. The suffix ``-nobn`` leaves out batch norms.
        input_shape: the shape of one example, ``(F,)`` or ``(C, H, W)``.
        num_classes: number of classes.
        generator: where the initial parameters are drawn from; the model is made on its device.

    Raises:
        OptionError: the name does not exist.
        ModelError: the network cannot take examples of this shape, or there are fewer than two classes.
    """
    model = outline_model(name, input_shape, num_classes)
    model.to_empty(device=generator.device)
    _entry(name, input_shape).init(model, generator)
    return model


def outline_model(name: str, input_shape: Sequence[int], num_classes: int) -> nn.Module:
    """The same network on the meta device: all shapes and no memory, whatever size somebody claims."""
    if num_classes < 2:
        raise ModelError(f"A classifier needs at least two classes, but there is {num_classes}; add another.")
    entry = _entry(name, input_shape)
    # On the meta device the constructors' own initialisation costs nothing and draws no random number.
    with torch.device("meta"):
        return entry.make(tuple(int(n) for n in input_shape), num_classes, not name.endswith(_SUFFIX))


def _entry(name: str, input_shape: Sequence[int]) -> _Entry:
    shape = tuple(int(n) for n in input_shape)
    if name not in list_models():
        raise OptionError(f"There is no model {name!r}; choose one of: {', '.join(list_models())}.")
    if len(shape) not in (1, 3) or min(shape, default=0) < 1:
        raise ModelError(
            f"Examples of shape {shape} fit no built-in model; give tables as (N, F) and images as (N, C, H, W)."
        )
    base = name.removesuffix(_SUFFIX)
    if base == "auto":
        base = _choose(shape)
    entry = _MODELS[base]
    if entry.needs_images and len(shape) != 3:
        raise ModelError(
            f"Model {base!r} needs images (C, H, W), but one example has shape {shape}; use 'mlp' or 'auto'."
        )
    return entry


def _choose(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return "mlp"
    return "lenet" if shape in ((1, 28, 28), (1, 32, 32)) else "small_cnn"


def _image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    channels, height, width = shape
    return channels, height, width
