"""Find the layer that ends a traced model, or say what stands in the way."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wrssl.api import ModelError
from wrssl.models.trace import Call, same


def find_last(model: nn.Module, output: Tensor, calls: list[Call]) -> Call:
    """The call of the Linear layer whose output is the model's output."""
    ending = [c for c in calls if same(c.output, output)]
    found = next((c for c in reversed(ending) if isinstance(c.module, nn.Linear)), None)
    if found is None:
        leaf = next((c for c in reversed(ending) if not any(c.module.children())), None)
        raise ModelError(_no_head(model, output, calls, leaf if leaf and leaf.module is not model else None))
    # In evaluation mode dropout hands its input through, and an activation in place returns its very input.
    for c in ending:
        if not isinstance(c.module, nn.Identity) and any(same(i, found.output) for i in c.inputs):
            raise ModelError(_ends_with(c))
    if found.snapshot is None or not torch.equal(found.snapshot.nan_to_num(), output.nan_to_num()):
        raise ModelError(
            f"The output of the last Linear layer {found.name!r} is changed in place afterwards; "
            "return it as it is, since the losses take logits."
        )
    return only_call(found.module, found.name, calls)


def only_call(layer: nn.Module, name: str, calls: list[Call]) -> Call:
    """The one call of this layer."""
    own = [c for c in calls if c.module is layer]
    if not own:
        raise ModelError(f"The layer {name!r} is never called in the forward pass; call it as self.{name}(h).")
    if len(own) > 1:
        raise ModelError(f"The layer {name!r} runs {len(own)} times; give the model a last layer of its own.")
    return own[0]


def _ends_with(call: Call) -> str:
    kind = type(call.module).__name__
    return (
        f"The model ends with {kind} ({call.name!r}), not with a Linear layer; "
        "remove what follows the last Linear, since the losses take logits."
    )


def _no_head(model: nn.Module, output: Tensor, calls: list[Call], last: Call | None) -> str:
    """Say why no Linear layer gives the output, as precisely as the trace allows."""
    if last is not None:
        return _ends_with(last)
    called = {id(c.module) for c in calls}
    linear = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    for name, m in linear.items():
        if id(m) not in called and output.shape[-1:] == (m.out_features,):
            return f"The Linear layer {name!r} is never called as a layer; use self.{name}(h), not its weight."
    if not linear:
        return "The model has no Linear layer; end it with one that gives the logits."
    names = ", ".join(repr(name) for name in linear)
    return (
        "The model's output is not the output of a Linear layer (something is computed after it); end the model "
        f"with a Linear layer that gives the logits, or name it with head=, one of: {names}."
    )
