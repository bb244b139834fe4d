"""The weighted twins of torch's batch-norm layers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from wrssl.api import DataError, ModelError
from wrssl.norm.composed import composed
from wrssl.norm.native import native
from wrssl.norm.policies import PassState, Source


class Weighted(_BatchNorm):
    """What the weighted layers share. Without weights they are torch's layers."""

    # A class attribute, so that converted layers carry no extra state and state_dicts are interchangeable.
    _pass_state: PassState | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Normalise ``input`` with the statistics that the surrounding context asks for."""
        if self._pass_state is None or not (self.training or self.running_mean is None):
            return self._plain(input)
        self._check_input_dim(input)
        asked = self.asked()
        if asked.weights is not None or (asked.part is not None and asked.source is not Source.RUNNING):
            return self._weighted(input, asked)
        lonely = input.numel() == input.shape[1]  # one value per channel has no variance; see ``moments.MIN_VALUES``
        if (
            (asked.source is Source.RUNNING or lonely)
            and self.running_mean is not None
            and self.running_var is not None
        ):
            # Clones: backward needs the statistics of now, and a later pass may update the buffers before it.
            mean, var = self.running_mean.clone(), self.running_var.clone()
            return F.batch_norm(input, mean, var, self.weight, self.bias, False, 0.0, self.eps)
        if asked.updates:
            return self._plain(input)
        return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)

    def asked(self) -> PassState:
        """What this layer has to do now, given its mode and the surrounding context; weights only where they count."""
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
        elif w is None:  # all count alike
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
        result = native(x, self.weight, self.bias, state.counts, self.eps) if state.part is None else None
        if result is None:
            if self.running_mean is not None and self.running_var is not None:
                running = self.running_mean.detach().to(dtype), self.running_var.detach().to(dtype)
            result = composed(x, self.weight, self.bias, w.to(dtype), running, self.eps, state.part)
        if state.updates and self.running_mean is not None:
            self.move_running(result.mean, result.variance * result.correction, result.counted)
        return result.y if x is input else result.y.to(input.dtype)

    def move_running(self, mean: Tensor, variance: Tensor, counted: Tensor | int) -> None:
        """Move the buffers toward the statistics that were used; where those are the buffers, this changes nothing.

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
        # .data: torch's kernel saves these buffers for the backward of the labelled pass although it does not read them
        # there; an ordinary in-place change between the two would raise a version error.
        for buffer, value in ((self.running_mean.data, mean), (self.running_var.data, variance)):
            buffer.lerp_(value.to(buffer.dtype), step)


class WeightedBatchNorm1d(Weighted, nn.BatchNorm1d):
    """``nn.BatchNorm1d`` that can weigh its examples: same constructor, same state_dict; see ``wrssl.norm``."""


class WeightedBatchNorm2d(Weighted, nn.BatchNorm2d):
    """``nn.BatchNorm2d`` that can weigh its examples: same constructor, same state_dict; see ``wrssl.norm``."""


class WeightedBatchNorm3d(Weighted, nn.BatchNorm3d):
    """``nn.BatchNorm3d`` that can weigh its examples: same constructor, same state_dict; see ``wrssl.norm``."""


class WeightedSyncBatchNorm(Weighted, nn.SyncBatchNorm):
    """What ``convert_batchnorm`` makes of ``nn.SyncBatchNorm``, so that it can be turned back with its process group.

    In one process it is a batch norm for any number of dimensions, on any device. In several processes the unweighted
    pass is torch's; a weighted one needs to know the weights of the others (``Part``) and is refused without, since
    local statistics would silently differ between the processes.
    """

    def _plain(self, input: Tensor) -> Tensor:
        return super()._plain(input) if _in_several_processes() else _BatchNorm.forward(self, input)

    def _weighted(self, input: Tensor, state: PassState) -> Tensor:
        if state.part is None and _in_several_processes():
            raise ModelError("Weighted statistics are not synchronised between processes; use plain BatchNorm layers.")
        return super()._weighted(input, state)


def _in_several_processes() -> bool:
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
