"""The contexts that set which statistics the weighted layers use, so that no model needs another ``forward``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from wrssl.errors import DataError, ModelError
from wrssl.norm.layers import Weighted, weighted_layers
from wrssl.norm.moments import Counts, Part, count_weights
from wrssl.norm.policies import PassState, Source


def statistics(
    layers: Iterable[Weighted],
    source: Source,
    updates: bool,
    w: Tensor | None,
    counts: Counts | None = None,
    part: Part | None = None,
) -> AbstractContextManager[None]:
    """Within the context these layers take their statistics from ``source``; ``w=None`` means every weight is 1.

    ``counts`` is the result of ``count_weights(w)``, if it has been computed already. ``part`` says that the inputs are
    some rows of a batch and ``w`` the weights of the whole batch.
    """
    state = _state(source, updates, w, counts)
    return _PassContext(layers, state if part is None else state._replace(part=part))


def _state(source: Source, updates: bool, w: Tensor | None, counts: Counts | None = None) -> PassState:
    if counts is None and w is not None and source is Source.WEIGHTED:
        counts = count_weights(w)
    # The copy: a change of w within the context must not affect one kind of kernel and miss another.
    return PassState(source, updates, w if counts is None else counts.w, counts)


class _PassContext:
    """Sets the state of ``layers`` until the context ends. A class, because it is entered in every pass and quicker."""

    def __init__(self, layers: Iterable[Weighted], state: PassState) -> None:
        self.layers, self.state = layers, state

    def __enter__(self) -> None:
        self.before = [(layer, layer.__dict__.get("_pass_state")) for layer in self.layers]
        for layer, _ in self.before:
            layer.__dict__["_pass_state"] = self.state

    def __exit__(self, *error: object) -> None:
        for layer, old in self.before:
            layer.__dict__.pop("_pass_state", None)
            if old is not None:  # contexts may be nested
                layer.__dict__["_pass_state"] = old


def sample_weights(module: nn.Module, w: Tensor, *, differentiable: bool = False) -> AbstractContextManager[None]:
    """Within this context the weighted layers of ``module`` count example i of the batch with weight ``w[i]``.

    In training mode the weighted statistics normalize the batch and update the running ones; in evaluation mode nothing
    changes, as with torch's layers. No model needs a new ``forward`` signature::

        with wrssl.sample_weights(model, w):
            logits = model(x)

    Args:
        module: a model whose batch-norm layers are weighted ones (``convert_batchnorm``), or one without such layers.
        w: one finite weight ≥ 0 per example, shape ``(B,)``; read now, so that later changes of it have no effect.
        differentiable: let gradients flow into ``w`` through the statistics; by default ``w`` is detached.
    """
    layers = weighted_layers(module)
    if not layers and any(isinstance(layer, _BatchNorm) for layer in module.modules()):
        raise ModelError("The batch-norm layers of this model ignore weights; call convert_batchnorm(model) first.")
    if not layers and isinstance(module, torch.jit.ScriptModule):
        raise ModelError("A scripted model ignores weights; give the original nn.Module.")
    if w.dim() != 1:
        raise DataError(
            f"Weights must have shape (B,), not {tuple(w.shape)}; flatten them if you mean one per example."
        )
    state = _state(Source.WEIGHTED, True, w if differentiable else w.detach())
    if not _finite_and_not_negative(w, state.counts):
        raise DataError("Weights must be finite and not negative; clamp them to [0, 1] first.")
    return _PassContext(layers, state)


def _finite_and_not_negative(w: Tensor, counts: Counts | None) -> bool:
    if counts is not None:
        return counts.lowest >= 0 and counts.total < math.inf
    return bool(torch.isfinite(w).all() & (w >= 0).all())
