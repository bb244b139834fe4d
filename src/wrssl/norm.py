"""Weighted batch normalisation, and the policies that say which statistics a pass uses.

Algorithm 1 of the paper: with one weight w_i per example, per channel and over all positions s of S,

    μ_w  = Σ_i w_i Σ_s x_is / (S Σ_i w_i)
    σ²_w = Σ_i w_i Σ_s (x_is − μ_w)² / (S Σ_i w_i)
    y    = γ (x − μ_w) / √(σ²_w + ε) + β

For w = 1 this is torch's batch norm; for w = 1 on the in-distribution part and 0 elsewhere it is batch norm of that
part alone (Proposition 3), which plain batch norm of the mixed batch is not (Proposition 1).

The paper leaves the running statistics open. Here

    running mean ← (1 − m) running mean + m μ_w
    running var  ← (1 − m) running var  + m σ²_w n/(n − 1),   n = S (Σ w)² / Σ w²

n is the effective number of values: scale-invariant in w, S·N for w = 1 and S·(number of ones) for 0/1 weights, so that
both identities hold for the buffers too; n > 1 keeps the variance non-negative (the naive Σw − 1 does not).
Where the batch carries no usable weight (Σw < ``MIN_TOTAL`` or n < 2) the running statistics normalise it and stay as
they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _LazyNormBase

from wrssl.api import DataError, ModelError, OptionError, Pass

MIN_TOTAL = 1e-3  # with 0/1 weights Σw is at least 1 as soon as anybody counts, so this never cuts into real batches
MIN_VALUES = 2 - 1e-4  # two equal weights give n = 2 up to rounding

Module = TypeVar("Module", bound=nn.Module)


class Source(Enum):
    """Where the statistics of one pass come from."""

    BATCH = "batch"
    RUNNING = "running"
    WEIGHTED = "weighted"


@dataclass(frozen=True)
class _PassState:
    """How the weighted layers behave until the surrounding context ends."""

    source: Source
    updates: bool
    weights: Tensor | None = None


# Labelled and unlabelled batches are separate passes; each cell is (statistics, are the buffers updated).
_SAME_FOR_ALL = {
    Pass.LABELED: (Source.BATCH, True),
    Pass.LOOKAHEAD: (Source.BATCH, False),
    Pass.VALIDATION: (Source.BATCH, False),
    Pass.EVALUATION: (Source.RUNNING, False),
}


def _policy(source: Source, clean_updates: bool) -> dict[Pass, tuple[Source, bool]]:
    return {
        **_SAME_FOR_ALL,
        Pass.UNLABELED: (source, clean_updates),
        Pass.PERTURBED: (source, False),
        Pass.TEACHER: (source, clean_updates),  # on the teacher's own buffers
    }


POLICIES: dict[str, dict[Pass, tuple[Source, bool]]] = {
    "batch": _policy(Source.BATCH, True),
    "frozen": _policy(Source.BATCH, False),
    "eval": _policy(Source.RUNNING, False),
    "weighted": _policy(Source.WEIGHTED, True),
}


def policy_table(name: str) -> dict[Pass, tuple[Source, bool]]:
    """The row of ``POLICIES`` with this name, or a sentence that lists the names."""
    if name not in POLICIES:
        raise OptionError(f"There is no batch-norm policy {name!r}; choose one of {', '.join(POLICIES)}.")
    return POLICIES[name]


def weighted_moments(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """μ_w and the biased σ²_w per channel of ``x`` (N, C, …) for weights ``w`` (N,).

    Two passes with a correction instead of E[x²] − μ²: at |mean|/std = 1000, which is what faraway examples cause, the
    difference of two large float32 numbers would have no correct digit left.
    """
    values = x.flatten(2) if x.dim() > 2 else x.unsqueeze(2)
    share = (w / w.sum().clamp_min(torch.finfo(w.dtype).tiny)).view(-1, 1, 1)
    mean = (share * values).sum(0).mean(-1)
    centred = values - mean.view(1, -1, 1)
    shift = (share * centred).sum(0).mean(-1)
    variance = (share * centred.square()).sum(0).mean(-1) - shift.square()
    return mean + shift, variance.clamp_min(0)


def effective_values(w: Tensor, positions: int) -> Tensor:
    """The effective number of values behind the weighted statistics, n = S (Σ w)² / Σ w²."""
    return positions * w.sum().square() / w.square().sum().clamp_min(torch.finfo(w.dtype).tiny)


class _Weighted(_BatchNorm):
    """What the weighted layers share. Without weights they are torch's layers."""

    # A class attribute, so that converted layers carry no extra state and state_dicts are interchangeable.
    _pass_state: _PassState | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Normalise ``input`` with the statistics that the surrounding context asks for."""
        state = self._pass_state
        if state is None or not (self.training or self.running_mean is None):
            return self._plain(input)
        if state.source is Source.WEIGHTED and state.weights is not None:
            self._check_input_dim(input)
            return self._weighted(input, state.weights, state.updates and self.training)
        if state.source is Source.RUNNING and self.running_mean is not None and self.running_var is not None:
            self._check_input_dim(input)
            # Clones: backward needs the statistics of now, and a later pass may update the buffers before it.
            mean, var = self.running_mean.clone(), self.running_var.clone()
            return F.batch_norm(input, mean, var, self.weight, self.bias, False, 0.0, self.eps)
        if state.updates:
            return self._plain(input)
        self._check_input_dim(input)
        return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)

    def _plain(self, input: Tensor) -> Tensor:
        return super().forward(input)

    def _check_input_dim(self, input: Tensor) -> None:
        super()._check_input_dim(input)  # type: ignore[no-untyped-call]

    def _weighted(self, input: Tensor, w: Tensor, updates: bool) -> Tensor:
        if w.shape[0] != input.shape[0]:
            raise DataError(
                f"sample_weights holds {w.shape[0]} weights but the batch has {input.shape[0]} examples; "
                "give one weight per example of this very batch."
            )
        if torch.is_autocast_enabled(input.device.type):
            # Statistics in reduced precision would be useless; torch's own batch norm keeps float32 too.
            with torch.autocast(input.device.type, enabled=False):
                return self._weighted_full(input, w, updates)
        return self._weighted_full(input, w, updates)

    def _weighted_full(self, input: Tensor, w: Tensor, updates: bool) -> Tensor:
        dtype = torch.promote_types(input.dtype, torch.float32)
        x, w = input.to(dtype), w.to(dtype)
        mean, variance = weighted_moments(x, w)
        n = effective_values(w, x[0, 0].numel())
        usable = (w.sum() >= MIN_TOTAL) & (n >= MIN_VALUES)
        if updates and self.running_mean is not None:
            self._update_running(mean.detach(), variance.detach(), n.detach(), usable)
        # torch.where instead of a Python branch: no host synchronisation, and gradients of the unused side are zero.
        mean = torch.where(usable, mean, self._fallback(self.running_mean, x, 0))
        variance = torch.where(usable, variance, self._fallback(self.running_var, x, 1))
        shape = (1, -1) + (1,) * (x.dim() - 2)
        y = (x - mean.view(shape)) * torch.rsqrt(variance + self.eps).view(shape)
        if self.weight is not None:
            y = y * self.weight.view(shape)
        if self.bias is not None:
            y = y + self.bias.view(shape)
        return y.to(input.dtype)

    def _fallback(self, running: Tensor | None, x: Tensor, moment: int) -> Tensor:
        """The running statistic before this batch, or the unweighted one where the layer tracks none."""
        if running is not None:
            return running.detach().clone().to(x.dtype)
        return weighted_moments(x, x.new_ones(len(x)))[moment]

    def _update_running(self, mean: Tensor, variance: Tensor, n: Tensor, usable: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        with torch.no_grad():
            self.num_batches_tracked.add_(usable.to(self.num_batches_tracked.dtype))
            factor = usable.to(mean.dtype)
            # momentum=None: the average over all batches
            factor = factor / self.num_batches_tracked.clamp_min(1) if self.momentum is None else factor * self.momentum
            unbiased = variance * n / (n - 1).clamp_min(1e-12)
            # .data: torch's kernel saves these buffers for the backward of the labelled pass although it does not read
            # them there; an ordinary in-place change between the two would raise a version error.
            for buffer, value in ((self.running_mean.data, mean), (self.running_var.data, unbiased)):
                buffer.add_(factor.to(buffer.dtype) * (value.to(buffer.dtype) - buffer))


class WeightedBatchNorm1d(_Weighted, nn.BatchNorm1d):
    """``nn.BatchNorm1d`` that can weigh its examples: same constructor, same state_dict; see the module docstring."""


class WeightedBatchNorm2d(_Weighted, nn.BatchNorm2d):
    """``nn.BatchNorm2d`` that can weigh its examples: same constructor, same state_dict; see the module docstring."""


class WeightedBatchNorm3d(_Weighted, nn.BatchNorm3d):
    """``nn.BatchNorm3d`` that can weigh its examples: same constructor, same state_dict; see the module docstring."""


class WeightedSyncBatchNorm(_Weighted, nn.SyncBatchNorm):
    """What ``convert_batchnorm`` makes of ``nn.SyncBatchNorm``, so that it can be turned back with its process group.

    In one process it is a batch norm for any number of dimensions, on any device. In several processes the unweighted
    pass is torch's; a weighted one is refused, since local statistics would silently differ between the processes.
    """

    def _plain(self, input: Tensor) -> Tensor:
        return super()._plain(input) if _in_several_processes() else _BatchNorm.forward(self, input)

    def _weighted(self, input: Tensor, w: Tensor, updates: bool) -> Tensor:
        if _in_several_processes():
            raise ModelError("Weighted statistics are not synchronised between processes; use plain BatchNorm layers.")
        return super()._weighted(input, w, updates)


def _in_several_processes() -> bool:
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


_WEIGHTED_CLASS: dict[type[nn.Module], type[_Weighted]] = {
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
        elif not back and isinstance(layer, _BatchNorm) and not isinstance(layer, _Weighted):
            warnings.warn(
                f"{type(layer).__name__} has its own forward and stays unweighted; derive it from WeightedBatchNorm2d.",
                stacklevel=2,
            )
    return module


def weighted_layers(module: nn.Module) -> list[_Weighted]:
    """The layers that listen to ``sample_weights`` and to the policies."""
    return [layer for layer in module.modules() if isinstance(layer, _Weighted)]


@contextmanager
def statistics(layers: Iterable[_Weighted], source: Source, updates: bool, w: Tensor | None) -> Iterator[None]:
    """Within the context these layers take their statistics from ``source``; ``w=None`` means every weight is 1."""
    state = _PassState(source, updates, w)
    before = [(layer, layer.__dict__.get("_pass_state")) for layer in layers]
    try:
        for layer, _ in before:
            layer.__dict__["_pass_state"] = state
        yield
    finally:
        for layer, old in before:
            layer.__dict__.pop("_pass_state", None)
            if old is not None:  # contexts may be nested
                layer.__dict__["_pass_state"] = old


@contextmanager
def sample_weights(module: nn.Module, w: Tensor, *, differentiable: bool = False) -> Iterator[None]:
    """Within this context the weighted layers of ``module`` count example i of the batch with weight ``w[i]``.

    In training mode the weighted statistics normalise the batch and update the running ones; in evaluation mode nothing
    changes, as with torch's layers. No model needs a new ``forward`` signature::

        with wrssl.sample_weights(model, w):
            logits = model(x)

    Args:
        module: a model whose batch-norm layers are weighted ones (``convert_batchnorm``), or one without such layers.
        w: one finite weight ≥ 0 per example, shape ``(B,)``.
        differentiable: let gradients flow into ``w`` through the statistics; by default ``w`` is detached.
    """
    layers = weighted_layers(module)
    if not layers and any(isinstance(layer, _BatchNorm) for layer in module.modules()):
        raise ModelError("The batch-norm layers of this model ignore weights; call convert_batchnorm(model) first.")
    if w.dim() != 1:
        raise DataError(
            f"Weights must have shape (B,), not {tuple(w.shape)}; flatten them if you mean one per example."
        )
    if not bool(torch.isfinite(w).all() & (w >= 0).all()):
        raise DataError("Weights must be finite and not negative; clamp them to [0, 1] first.")
    with statistics(layers, Source.WEIGHTED, True, w if differentiable else w.detach()):
        yield
