"""Logits of any number of examples, in evaluation mode and bounded memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wrssl.data import prepare

CHUNK = 500


@torch.no_grad()
def logits_of(
    model: nn.Module,
    x: Tensor,
    device: torch.device | None = None,
    forward: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """The model's output for every row of ``x``, (N, C), float32 on the CPU.

    The model runs in evaluation mode, with running statistics; afterwards the mode of each module is as before.

    Args:
        model: the network.
        x: stored rows, (N, …).
        device: where the model is; None takes the device of its parameters.
        forward: a faster way to the same output by the layers of ``model``, or None.
    """
    forward = forward or model
    device = device or next((p.device for p in model.parameters()), torch.device("cpu"))
    mode = {m: m.training for m in model.modules()}
    model.eval()
    try:
        parts = [forward(prepare(chunk).to(device)).float().cpu() for chunk in x.split(CHUNK)]
    finally:
        for module, training in mode.items():
            module.training = training
    return torch.cat(parts)


def accuracy_and_loss(logits: Tensor, y: Tensor) -> tuple[float, float]:
    """The share of correct predictions, and the mean cross-entropy."""
    return float((logits.argmax(1) == y).double().mean()), float(F.cross_entropy(logits, y))
