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

from wrssl.errors import ModelError
from wrssl.models.trace import Call, same, trace, undisturbed


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
    the result. Both restore mode, buffers, hooks and random state.

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
    call = _find_last(model, output, calls) if layer is None else _only_call(layer, head or "", calls)
    if call.inputs[0].ndim != 2 or output.ndim != 2:
        raise ModelError(
            f"The last layer {call.name!r} gets features of shape {tuple(call.inputs[0].shape)}; "
            "pool or flatten them to (batch, features) before it."
        )
    last = _named(model, call.name)
    result = Split(model, _without(model, last), last, call.name)
    _verify(result, example, output)
    return result


def _find_last(model: nn.Module, output: Tensor, calls: list[Call]) -> Call:
    """The call of the Linear layer whose output is the model's output."""
    ending = [c for c in calls if same(c.output, output)]
    found = next((c for c in reversed(ending) if isinstance(c.module, nn.Linear)), None)
    if found is None:
        leaf = next((c for c in reversed(ending) if not any(c.module.children())), None)
        raise ModelError(_no_head(model, output, calls, leaf if leaf and leaf.module is not model else None))
    # In evaluation mode dropout returns its input, and an in-place activation returns the very tensor it got.
    for c in ending:
        if not isinstance(c.module, nn.Identity) and any(same(i, found.output) for i in c.inputs):
            raise ModelError(_ends_with(c))
    if found.snapshot is None or not torch.equal(found.snapshot.nan_to_num(), output.nan_to_num()):
        raise ModelError(
            f"The output of the last Linear layer {found.name!r} is changed in place afterwards; "
            "return it as it is, since the losses take logits."
        )
    return _only_call(found.module, found.name, calls)


def _only_call(layer: nn.Module, name: str, calls: list[Call]) -> Call:
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

    Only containers that hold the head, at any depth, are copied, each once even where it has several names. A copy
    keeps the same dictionaries of parameters and buffers, so that a move to another device reaches both.
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
