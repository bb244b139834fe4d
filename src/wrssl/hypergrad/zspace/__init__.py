"""Losses as functions of the logits z, with their derivatives in closed form; one loss per file.

Notation: p = softmax(z); t = target, a constant; ``S`` and ``T`` as in base.py; all tensors ``(B, C)``, one example
per row. Each loss linearises once and multiplies often: ``hessian(z, t)`` and ``gauss_newton(z, t)`` return
functions of u.
"""

from __future__ import annotations

from wrssl.api import OptionError
from wrssl.hypergrad.zspace.automatic import automatic
from wrssl.hypergrad.zspace.base import LogitLoss
from wrssl.hypergrad.zspace.cross_entropy import CrossEntropy
from wrssl.hypergrad.zspace.entropy import Entropy
from wrssl.hypergrad.zspace.reverse_kl import ReverseKL
from wrssl.hypergrad.zspace.squared_error import SquaredError

LOSSES: dict[str, LogitLoss] = {
    "ce": CrossEntropy(),
    "mse": SquaredError(),
    "kl": ReverseKL(),
    "entropy": Entropy(),
}


def logit_loss(loss: str | LogitLoss) -> LogitLoss:
    """A loss by its name; a ``LogitLoss`` is returned as it is."""
    if isinstance(loss, LogitLoss):
        return loss
    if loss not in LOSSES:
        raise OptionError(f'There is no closed form for the loss "{loss}": use one of {", ".join(LOSSES)}.')
    return LOSSES[loss]


__all__ = ["LOSSES", "LogitLoss", "automatic", "logit_loss"]
