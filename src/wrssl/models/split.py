"""Split any model that ends with a Linear layer into that layer and everything before it.

The model stays as it is. The backbone is a second view of it: the same parameters, buffers and submodules, except
that the containers on the way to the head are shallow copies in which the head is an ``nn.Identity``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from wrssl.api import ModelError
from wrssl.models.find import find_last, only_call
from wrssl.models.trace import trace, undisturbed


@dataclass(frozen=True, eq=False)
class Split:
    """``head(backbone(x)) == model(x)``; all three share their parameters and buffers.

    The copied containers of the backbone have their own training flags, so switch modes here (or on the
    backbone), and replace submodules (``convert_batchnorm``) before splitting.

    Attributes:
        model: the user's module, its structure untouched.
        backbone: gives the head's input, shape ``(B, d)``; its parameters have the same names as in the model.
        head: the last layer.
        head_name: its name in the model; ``""`` where the model is nothing but the head.
    """

    model: nn.Module
    backbone: nn.Module
    head: nn.Linear
    head_name: str

    def train(self, mode: bool = True) -> Split:
        """Switch model, backbone and head between training and evaluation mode."""
        self.model.train(mode)
        self.backbone.train(mode)
        return self

    def eval(self) -> Split:
        """``train(False)``."""
        return self.train(False)

    def twin(self, model: nn.Module) -> Split:
        """The same split of another model of the same structure (a deep copy, say), without a new trace."""
        head = _named(model, self.head_name)
        return Split(model, _without(model, head), head, self.head_name)


def split(model: nn.Module, example: Tensor, head: str | None = None) -> Split:
    """Find the last layer of ``model`` and build the backbone.

    One forward pass in evaluation mode shows which Linear layer gives the model's output; a second one checks
    the result. Neither leaves a trace: mode, buffers, hooks and random state are as before.

    Args:
        model: any module whose output is the output of an ``nn.Linear``.
        example: a batch of inputs, at least one.
        head: the name of the last layer (``"fc"``, ``"encoder.classifier"``) where tracing cannot find it.

    Raises:
        ModelError: the model does not end with a Linear layer; the message says what to change.
    """
    if isinstance(model, torch.jit.ScriptModule) or hasattr(model, "_orig_mod"):
        raise ModelError("A compiled or scripted model cannot be split; give the original nn.Module.")
    if any(is_lazy(p) for p in model.parameters()):
        raise ModelError("The model has lazy layers without a shape; run one batch through it first.")
    layer = _named(model, head) if head is not None else None
    output, calls = trace(model, example)
    if not isinstance(output, Tensor):
        raise ModelError(
            f"The model returns a {type(output).__name__}, not a tensor; "
            "wrap it in a module whose forward returns the logits only."
        )
    call = find_last(model, output, calls) if layer is None else only_call(layer, head or "", calls)
    if call.inputs[0].ndim != 2 or output.ndim != 2:
        raise ModelError(
            f"The last layer {call.name!r} gets features of shape {tuple(call.inputs[0].shape)}; "
            "pool or flatten them to (batch, features) before it."
        )
    last = _named(model, call.name)
    result = Split(model, _without(model, last), last, call.name)
    _verify(result, example, output)
    return result


def _named(model: nn.Module, name: str) -> nn.Linear:
    """The Linear layer of this name."""
    modules = dict(model.named_modules(remove_duplicate=False))
    layer = modules.get(name)
    if isinstance(layer, nn.Linear):
        return layer
    names = ", ".join(repr(n) for n, m in modules.items() if isinstance(m, nn.Linear)) or "none"
    what = f"has no layer {name!r}" if layer is None else f"has {type(layer).__name__} as {name!r}"
    raise ModelError(f"The model {what}; head= must name one of its Linear layers: {names}.")


def _without(model: nn.Module, head: nn.Module) -> nn.Module:
    """The model with an identity in place of ``head``, all else shared.

    Only containers that hold the head, however deep, are copied, each once even where it has several names. A copy
    keeps the very dictionaries of parameters and buffers, so that a move to another device reaches both.
    """
    copies: dict[int, nn.Module] = {id(head): nn.Identity()}

    def copy(module: nn.Module) -> nn.Module:
        if id(module) in copies:
            return copies[id(module)]
        if not any(m is head for m in module.modules()):
            return module
        twin = copies[id(module)] = object.__new__(type(module))
        # Not copy.copy: a class may define what copying and pickling mean for it.
        twin.__dict__.update(module.__dict__)
        twin.__dict__["_modules"] = {
            name: child if child is None else copy(child) for name, child in module._modules.items()
        }
        return twin

    return copy(model)


def _verify(parts: Split, example: Tensor, output: Tensor) -> None:
    """Check that head and backbone together are the model, and that the head is linear."""
    head, name = parts.head, parts.head_name
    try:
        with undisturbed(parts.backbone, example.device):
            features = parts.backbone(example)
            computed = head(features), F.linear(features, head.weight, head.bias)
    except Exception as error:
        raise ModelError(
            f"The model does not run without its last layer {name!r}; use self.{name} only by calling it, "
            "at the end of the forward pass."
        ) from error
    expected = output.double()
    scale = float(expected.nan_to_num().abs().max()) if expected.numel() else 1.0
    for got in computed:
        if got.shape != output.shape or not torch.allclose(
            got.double(), expected, rtol=1e-4, atol=1e-5 * max(1.0, scale), equal_nan=True
        ):
            raise ModelError(
                f"The model's output is not {name!r} applied to the features before it; "
                "end the model with a plain Linear layer that is used once, or name another one with head=."
            )
