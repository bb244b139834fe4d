"""When a fused block can stand for its layers, and what it may leave out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from wrssl.norm.policies import PassState

_constant: ContextVar[bool] = ContextVar("constant_parameters", default=False)


@contextmanager
def constant_parameters() -> Iterator[None]:
    """Within this context blocks treat their parameters as constants, for passes that differentiate the input only.

    Autograd leaves out gradients nobody asked for in its own layers, but a custom function is never told; so a search
    for an adversarial input would pay for the gradients of all kernels and throw them away.
    """
    token = _constant.set(True)
    try:
        yield
    finally:
        _constant.reset(token)


def as_asked(parameters: list[Tensor | None]) -> list[Tensor | None]:
    """The parameters, as constants where the context says so."""
    return [None if p is None else p.detach() for p in parameters] if _constant.get() else parameters


def known(asked: PassState) -> bool:
    """Whether the host knows the weights, if there are any."""
    return asked.weights is None or asked.counts is not None


def possible(x: Tensor, *parameters: Tensor) -> bool:
    """Whether a block can compute with these tensors now."""
    dtype = x.dtype
    return (
        x.device.type == "cpu"  # where it was measured
        and dtype in (torch.float32, torch.float64)
        and all(p.dtype == dtype for p in parameters)
        and len(x) > 0
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()  # they cannot look into a custom function
    )
