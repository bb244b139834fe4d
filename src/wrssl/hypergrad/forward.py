"""Forward-mode derivatives, without the warning that torch's first one causes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.autograd import forward_ad


def directional(function: Callable[[Tensor], Tensor], x: Tensor, u: Tensor) -> Tensor:
    """``d/dt function(x + t u)|_{t=0}``: all outputs at once, at the cost of about two evaluations, no graph kept."""
    _load_forward_mode()
    derivative: Tensor = torch.func.jvp(function, (x,), (u,))[1]
    return derivative


def tangent(function: Callable[[Tensor], Tensor], x: Tensor, u: Tensor) -> Tensor:
    """The same derivative by dual numbers outside ``torch.func``, which supports custom functions with a ``jvp``."""
    _load_forward_mode()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, u)
        value, derivative = forward_ad.unpack_dual(function(dual))
    return torch.zeros_like(value) if derivative is None else derivative


@cache
def _load_forward_mode() -> None:
    """Torch's first forward-mode derivative imports a module that warns about torch itself (``torch.jit.script``).

    A user cannot do anything about that, and where warnings are turned into errors the run would stop.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torch.jit.*", category=DeprecationWarning)
        one = torch.ones(())
        torch.func.jvp(torch.sin, (one,), (one,))
