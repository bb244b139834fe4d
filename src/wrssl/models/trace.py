"""Record the module calls of one forward pass, and leave the model as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from wrssl.errors import ModelError


@dataclass(frozen=True)
class Call:
    """One call of one module. The tensors are kept, so that no other tensor gets their addresses.

    Attributes:
        name: the module's name in the model, ``""`` for the model itself.
        module: the module.
        inputs: the tensors among its arguments.
        output: what it returned.
        snapshot: for a Linear layer, a copy of its output, to detect a later change in place.
    """

    name: str
    module: nn.Module
    inputs: tuple[Tensor, ...]
    output: Any
    snapshot: Tensor | None


@contextmanager
def undisturbed(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards flags, buffers and random state are as before.

    Flags are set one by one, because ``train()`` may be overridden (to keep some layers frozen, say). Random
    state is restored, so two passes of a model that draws noise in evaluation mode draw the same noise.
    """
    flags = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module, _ in flags
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    devices = [device] if device.type == "cuda" else []
    try:
        for module, _ in flags:
            module.training = False
        with torch.no_grad(), torch.random.fork_rng(devices=devices):
            yield
    finally:
        for module, flag in flags:
            module.training = flag
        for module, name, buffer, before in buffers:
            module._buffers[name] = buffer
            if not torch.equal(buffer, before):
                buffer.copy_(before)


def trace(model: nn.Module, x: Tensor) -> tuple[object, list[Call]]:
    """Run ``model(x)`` once; returns its output and every module call in order of completion.

    Raises:
        ModelError: the model cannot process ``x``.
    """
    calls: list[Call] = []

    def watch(name: str, module: nn.Module) -> torch.utils.hooks.RemovableHandle:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            inputs = tuple(a for a in (*args, *kwargs.values()) if isinstance(a, Tensor))
            linear = isinstance(module, nn.Linear) and isinstance(output, Tensor)
            calls.append(Call(name, module, inputs, output, output.clone() if linear else None))

        return module.register_forward_hook(hook, with_kwargs=True)

    handles = [watch(name, module) for name, module in model.named_modules()]
    try:
        with undisturbed(model, x.device):
            output = model(x)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise ModelError(
            f"The model cannot process a batch of shape {tuple(x.shape)} and type {x.dtype} ({reason}); "
            "give it a model made for this data."
        ) from error
    finally:
        for handle in handles:
            handle.remove()
    return output, calls


def same(a: object, b: object) -> bool:
    """Whether two tensors are the same numbers in the same memory."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return False
    return a is b or (a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.dtype == b.dtype)
