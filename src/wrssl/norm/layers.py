"""The weighted counterparts of torch's batch-norm layers, and the conversion from torch's layers to them and back."""

from __future__ import annotations

import warnings
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _LazyNormBase

from wrssl.errors import DataError, ModelError
from wrssl.norm.composed import composed
from wrssl.norm.moments import Part
from wrssl.norm.policies import PassState, Source

Module = TypeVar("Module", bound=nn.Module)


class Weighted(_BatchNorm):
    """The base of the weighted layers. Without weights they behave like torch's layers."""

    # Class attributes, so that converted layers carry no extra state and state_dicts are interchangeable.
    native: bool = True  # use torch's own kernels where they are possible; see ``use_native_kernels``
    _pass_state: PassState | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Normalize ``input`` with the statistics that the surrounding context asks for."""
        if self._pass_state is None or not (self.training or self.running_mean is None):
            return self._plain(input)
        self._check_input_dim(input)
        asked = self.asked()
        if asked.weights is not None or (asked.part is not None and asked.source is not Source.RUNNING):
            return self._weighted(input, asked)
        return self._unweighted(input, asked)

    def _unweighted(self, input: Tensor, asked: PassState) -> Tensor:
        single = input.numel() == input.shape[1]  # one value per channel has no variance; see ``moments.MIN_VALUES``
        if (
            (asked.source is Source.RUNNING or single)
            and self.running_mean is not None
            and self.running_var is not None
        ):
            # Clones: backward needs the current statistics, and a later pass may update the buffers before it.
            mean, var = self.running_mean.clone(), self.running_var.clone()
            return F.batch_norm(input, mean, var, self.weight, self.bias, eps=self.eps)
        if asked.updates:
            return self._plain(input)
        return F.batch_norm(input, None, None, self.weight, self.bias, training=True, eps=self.eps)

    def asked(self) -> PassState:
        """What the next pass does, given the mode and the surrounding context; weights only where they count."""
        state, tracked = self._pass_state, self.running_mean is not None
        if tracked and not self.training:
            return PassState(Source.RUNNING, False)
        if state is None:
            return PassState(Source.BATCH, self.training)
        if state.source is Source.RUNNING and tracked:
            return PassState(Source.RUNNING, False)
        if state.source is Source.WEIGHTED and state.weights is not None:
            return state if self.training or not state.updates else state._replace(updates=False)
        return PassState(Source.BATCH, state.updates, part=state.part)

    @property
    def part(self) -> Part | None:
        """Which rows of a joint batch the inputs are; None where they are all of it."""
        return None if self._pass_state is None else self._pass_state.part

    def _plain(self, input: Tensor) -> Tensor:
        return super().forward(input)

    def _check_input_dim(self, input: Tensor) -> None:
        super()._check_input_dim(input)  # type: ignore[no-untyped-call]

    def check_weights(self, input: Tensor, w: Tensor) -> None:
        """Refuse weights that belong to another batch."""
        if w.shape[0] != input.shape[0]:
            raise DataError(
                f"sample_weights holds {w.shape[0]} weights but the batch has {input.shape[0]} examples; "
                "give one weight per example of this very batch."
            )

    def _weighted(self, input: Tensor, state: PassState) -> Tensor:
        w, part = state.weights, state.part
        if part is None:
            assert w is not None
            self.check_weights(input, w)
            if not len(input):  # nothing to weight: torch's layer, which counts an empty batch too
                return self._unweighted(input, state)
        elif w is None:  # all weights are 1
            w = input.new_ones(part.size)
        if torch.is_autocast_enabled(input.device.type):
            # Statistics in reduced precision would be useless; torch's own batch norm keeps float32 too.
            with torch.autocast(input.device.type, enabled=False):
                return self._weighted_full(input, w, state)
        return self._weighted_full(input, w, state)

    def _weighted_full(self, input: Tensor, w: Tensor, state: PassState) -> Tensor:
        x, running = input, None
        if x.dtype not in (torch.float32, torch.float64):  # too few digits for a statistic
            x = x.to(torch.promote_types(x.dtype, torch.float32))
        dtype = x.dtype
        result = None
        if self.native and state.part is None:
            from wrssl.norm.native import native  # here, as it loads numba, which takes a fifth as long as torch

            result = native(x, self.weight, self.bias, state.counts, self.eps)
        if result is None:
            if self.running_mean is not None and self.running_var is not None:
                running = self.running_mean.detach().to(dtype), self.running_var.detach().to(dtype)
            result = composed(x, self.weight, self.bias, w.to(dtype), running, self.eps, state.part)
        if state.updates and self.running_mean is not None:
            self.move_running(result.mean, result.variance * result.correction, result.counted)
        return result.y if x is input else result.y.to(input.dtype)

    def __prepare_scriptable__(self) -> nn.Module:
        raise ModelError(
            "torch.jit.script cannot compile weighted layers; call convert_batchnorm(model, back=True) first."
        )

    def move_running(self, mean: Tensor, variance: Tensor, counted: Tensor | int) -> None:
        """Update the buffers with the statistics that were used; where those are the buffers, this changes nothing.

        Args:
            mean: per channel.
            variance: per channel, unbiased.
            counted: 1 for a batch that counts, 0 for one whose weights were not usable.
        """
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(counted)
        step: float | Tensor | None = self.momentum
        if step is None:  # the average over all batches
            step = 1 / self.num_batches_tracked.clamp_min(1).to(self.running_mean)
        # .data: torch's kernel saves these buffers for the backward of the labeled pass although it does not read them
        # there; an ordinary in-place change between the two would raise a version error.
        for buffer, value in ((self.running_mean.data, mean), (self.running_var.data, variance)):
            buffer.lerp_(value.to(buffer.dtype), step)


class WeightedBatchNorm1d(Weighted, nn.BatchNorm1d):
    """``nn.BatchNorm1d`` that can weight its examples: same constructor, same state_dict; see ``wrssl.norm``."""


class WeightedBatchNorm2d(Weighted, nn.BatchNorm2d):
    """``nn.BatchNorm2d`` that can weight its examples: same constructor, same state_dict; see ``wrssl.norm``."""


class WeightedBatchNorm3d(Weighted, nn.BatchNorm3d):
    """``nn.BatchNorm3d`` that can weight its examples: same constructor, same state_dict; see ``wrssl.norm``."""


class WeightedSyncBatchNorm(Weighted, nn.SyncBatchNorm):
    """What ``convert_batchnorm`` makes of ``nn.SyncBatchNorm``, so that it can be turned back with its process group.

    In one process it is a batch norm for any number of dimensions, on any device. In several processes the unweighted
    pass is torch's; a weighted one needs the weights of the whole batch (``Part``) and is refused without them, since
    local statistics would silently differ between the processes.
    """

    def _plain(self, input: Tensor) -> Tensor:
        return super()._plain(input) if _in_several_processes() else _BatchNorm.forward(self, input)

    def _weighted(self, input: Tensor, state: PassState) -> Tensor:
        if state.part is None and _in_several_processes():
            raise ModelError("Weighted statistics are not synchronized between processes; use plain BatchNorm layers.")
        return super()._weighted(input, state)


def _in_several_processes() -> bool:
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


_WEIGHTED_CLASS: dict[type[nn.Module], type[Weighted]] = {
    nn.BatchNorm1d: WeightedBatchNorm1d,
    nn.BatchNorm2d: WeightedBatchNorm2d,
    nn.BatchNorm3d: WeightedBatchNorm3d,
    nn.SyncBatchNorm: WeightedSyncBatchNorm,
}
_PLAIN_CLASS = {weighted: plain for plain, weighted in _WEIGHTED_CLASS.items()}


def convert_batchnorm(module: Module, back: bool = False) -> Module:
    """Turn every batch-norm layer of ``module`` into a weighted one, or with ``back=True`` into torch's again.

    Works in place and returns ``module``. Layers change their class and nothing else: parameters, buffers, hooks and
    object identity stay, so optimizers, shared layers and references held elsewhere remain valid.
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
    """The layers of ``module`` that follow ``sample_weights`` and the policies."""
    return [layer for layer in module.modules() if isinstance(layer, Weighted)]


def use_native_kernels(module: nn.Module, wanted: bool) -> None:
    """Let the weighted layers of ``module`` use torch's own kernels where possible (the default), or never.

    Without them the same is computed from tensor operations, up to rounding; for comparisons.
    """
    for layer in weighted_layers(module):
        layer.__dict__.pop("native", None)
        if not wanted:
            layer.native = False
