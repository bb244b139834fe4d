"""From torch's batch-norm layers to the weighted ones, and back."""

from __future__ import annotations

import warnings
from typing import TypeVar

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _LazyNormBase

from wrssl.api import ModelError
from wrssl.norm.layers import (
    Weighted,
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
    WeightedSyncBatchNorm,
)

Module = TypeVar("Module", bound=nn.Module)

_WEIGHTED_CLASS: dict[type[nn.Module], type[Weighted]] = {
    nn.BatchNorm1d: WeightedBatchNorm1d,
    nn.BatchNorm2d: WeightedBatchNorm2d,
    nn.BatchNorm3d: WeightedBatchNorm3d,
    nn.SyncBatchNorm: WeightedSyncBatchNorm,
}
_PLAIN_CLASS = {weighted: plain for plain, weighted in _WEIGHTED_CLASS.items()}


def convert_batchnorm(module: Module, back: bool = False) -> Module:
    """Turn every batch-norm layer of ``module`` into its weighted twin, or with ``back=True`` into torch's again.

    Works in place and returns ``module``. Layers change their class and nothing else: parameters, buffers, hooks and
    object identity stay, so optimisers, shared layers and references held elsewhere go on working.
    """
    classes = _PLAIN_CLASS if back else _WEIGHTED_CLASS
    for layer in module.modules():
        if isinstance(layer, _LazyNormBase) and layer.has_uninitialized_params():
            raise ModelError("The model has lazy batch-norm layers; run one batch through it before converting it.")
        if type(layer) in classes:
            layer.__class__ = classes[type(layer)]  # type: ignore[index]
        elif not back and isinstance(layer, _BatchNorm) and not isinstance(layer, Weighted):
            warnings.warn(
                f"{type(layer).__name__} has its own forward and stays unweighted; derive it from WeightedBatchNorm2d.",
                stacklevel=2,
            )
    return module


def weighted_layers(module: nn.Module) -> list[Weighted]:
    """The layers that listen to ``sample_weights`` and to the policies."""
    return [layer for layer in module.modules() if isinstance(layer, Weighted)]
