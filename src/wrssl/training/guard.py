"""A step that explodes is not taken.

A loss or a gradient that is not finite (or whose square is not) would spread to every parameter, to the moments of the
optimiser and to the running statistics, and stay there. Such a step is skipped: parameters, moments and statistics are
what they were, the weighting hears of no losses, and the step is counted. Whether it happens is a number on the device
that nobody waits for; the host reads it where it reads the losses anyway (``tally.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase


class Guard:
    """Takes the steps of an optimiser that can be taken.

    Args:
        optimizer: torch's fused ones skip a step by themselves if they are told so; for others the host has a look.
        modules: the networks whose running statistics a pass may move.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, modules: Sequence[nn.Module]) -> None:
        self.optimizer = optimizer
        self._skips_itself = bool(getattr(optimizer, "_step_supports_amp_scaling", False))
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        layers = [layer for module in modules for layer in module.modules() if isinstance(layer, _NormBase)]
        found = [buffer for layer in layers for buffer in (layer.running_mean, layer.running_var)]
        self._statistics = [buffer for buffer in found if buffer is not None]
        self._before = [buffer.clone() for buffer in self._statistics]
        self._flag = torch.zeros((), device=self._parameters[0].device)

    def begin(self) -> None:
        """Remember the running statistics, before the first pass of a step."""
        if self._before:
            torch._foreach_copy_(self._before, self._statistics)

    def step(self, loss: Tensor) -> Tensor:
        """Take the step if ``loss`` and all gradients are finite; returns 1 where they are not, else 0."""
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        # A norm overflows where the squares do that Adam keeps, which would then stop a parameter for good.
        sizes = torch.stack([*torch._foreach_norm(gradients), loss.to(gradients[0])])
        broken = sizes.isfinite().all().logical_not().to(self._flag)
        if self._skips_itself:
            self.optimizer.found_inf = broken  # type: ignore[attr-defined]
            self.optimizer.step()
        elif not bool(broken):
            self.optimizer.step()
        skipped = broken.bool()
        for before, now in zip(self._before, self._statistics, strict=True):
            torch.where(skipped, before, now, out=now)
        return broken
