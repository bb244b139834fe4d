"""Networks by name: built from a given generator, or outlined without drawing and without memory.

A network is a factory in the registry ``MODELS``, in the package or in a file of the user's own::

    @wrssl.register_model("mine")
    def mine(input_shape, num_classes, batch_norm): ...  # an nn.Module whose last layer is nn.Linear; or its class

Optional facts beside the name: ``images=True`` refuses tables, ``lr`` and ``C`` say how the network is trained
(``training_habit``), and ``init(model, generator)`` sets every parameter and
buffer of a model that was built without memory. All networks of the package have both. A model without ``init`` is
initialized by its own constructors, whose random numbers follow from the same generator. A factory that takes no
``batch_norm`` has no variant ``-nobn``.
"""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from wrssl.errors import ModelError, OptionError, WRSSLError
from wrssl.registry import MODELS

AUTO, SUFFIX = "auto", "-nobn"


def list_models() -> list[str]:
    """Every name that ``build_model`` knows."""
    names = [AUTO, *MODELS.names()]
    return [*names, *(name + SUFFIX for name in names if name == AUTO or _takes_batch_norm(MODELS.get(name)))]


def build_model(name: str, input_shape: Sequence[int], num_classes: int, generator: torch.Generator) -> nn.Module:
    """Build and initialize a network; its last layer is an ``nn.Linear`` that gives logits.

    All randomness comes from ``generator``; torch's global generator is left as it was.

    Args:
        name: one of ``list_models()``. ``"auto"`` takes ``mlp`` for tables, ``lenet`` for one-channel images of
            28x28 or 32x32, and ``small_cnn`` for all other images. The suffix ``-nobn`` leaves out batch norms.
        input_shape: the shape of one example, ``(F,)`` or ``(C, H, W)``.
        num_classes: number of classes.
        generator: where the initial parameters are drawn from; the model is made on its device.

    Raises:
        OptionError: the name does not exist.
        ModelError: the network cannot take examples of this shape, or there are fewer than two classes.
    """
    recipe = _recipe(name, input_shape, num_classes)
    if recipe.init is None:
        try:
            return recipe.build(generator).to(generator.device)
        except WRSSLError:
            raise
        except Exception as error:  # whatever a user's factory raises
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise ModelError(
                f"The model {name!r} cannot be built for examples of shape {recipe.shape} and {num_classes} classes "
                f"({reason}); correct the factory that is registered under this name."
            ) from error
    model = recipe.outline()
    model.to_empty(device=generator.device)
    recipe.init(model, generator)
    return model


def outline_model(name: str, input_shape: Sequence[int], num_classes: int) -> nn.Module:
    """The same network on the meta device: all shapes and no memory, so that a claimed size costs nothing.

    Its parameters are to be assigned from a state dict. A model from outside that does not work this way, for example
    because it holds tensors that are in no state dict, is really built.
    """
    recipe = _recipe(name, input_shape, num_classes)
    if recipe.init is not None:
        return recipe.outline()
    try:
        with _private_generator(torch.Generator()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of pretrained weights that are loaded into nothing
            model = recipe.outline()
    except Exception:  # whatever a user's factory raises when its tensors hold no values
        model = None
    return model if model is not None and _is_restorable(model) else recipe.build(torch.Generator())


@dataclass(frozen=True)
class Habit:
    """How a network is trained where the user does not say it; None leaves it to the method.

    Attributes:
        lr: initial learning rate.
        weight_decay: μ.
    """

    lr: float | None = None
    weight_decay: float = 0.0


def training_habit(model: Any, labels: int) -> Habit:
    """What was registered beside the network of this name: ``lr``, and ``C`` for μ = 1/(C n).

    With n labeled rows that is the penalty of logistic regression with this C, whose loss is a sum over the rows.
    """
    facts = MODELS.facts(model) if isinstance(model, str) and model in MODELS.names() else {}
    return Habit(facts.get("lr"), 1 / (facts["C"] * labels) if "C" in facts else 0.0)


@dataclass(frozen=True)
class _Recipe:
    """All that is needed to build one network.

    Attributes:
        name: as it was asked for.
        factory: gives the network.
        init: draws its parameters; None where the factory does.
        shape: of one example.
        num_classes: number of classes.
        options: ``batch_norm``, where the factory takes it.
    """

    name: str
    factory: Callable[..., Any]
    init: Callable[[nn.Module, torch.Generator], None] | None
    shape: tuple[int, ...]
    num_classes: int
    options: dict[str, bool]

    def outline(self) -> nn.Module:
        """On the meta device, where the constructors' own initialization costs nothing and draws no random number."""
        with torch.device("meta"):
            return self._make()

    def build(self, generator: torch.Generator) -> nn.Module:
        """By the constructors' own initialization; a module that the factory keeps is copied, since runs change it."""
        with _private_generator(generator):
            return copy.deepcopy(self._make())

    def _make(self) -> nn.Module:
        model = self.factory(self.shape, self.num_classes, **self.options)
        if not isinstance(model, nn.Module):
            raise ModelError(
                f"The factory of the model {self.name!r} returns a {type(model).__name__}; let it return an nn.Module."
            )
        return model


def _recipe(name: str, input_shape: Sequence[int], num_classes: int) -> _Recipe:
    """Look up the network and check that it can take such data."""
    if num_classes < 2:
        raise ModelError(f"A classifier needs at least two classes, but there is {num_classes}; add another.")
    shape = tuple(int(n) for n in input_shape)
    known = MODELS.names()
    base = name if name in known else name.removesuffix(SUFFIX)
    if base not in (AUTO, *known):
        raise OptionError(
            f"There is no model {name!r}; choose one of: {', '.join(list_models())}, or register one of your own."
        )
    facts: dict[str, Any] = {"images": False} if base == AUTO else MODELS.facts(base)
    images = facts.get("images")
    if images is not None and (len(shape) not in (1, 3) or min(shape) < 1):
        raise ModelError(
            f"Examples of shape {shape} fit no built-in model; give tables as (N, F) and images as (N, C, H, W)."
        )
    if base == AUTO:
        base = _by_shape(shape)
        facts = MODELS.facts(base)
    elif images and len(shape) != 3:
        raise ModelError(
            f"Model {base!r} needs images (C, H, W), but one example has shape {shape}; use 'mlp' or 'auto'."
        )
    factory, plain = MODELS.get(base), name != base and name.endswith(SUFFIX)
    if _takes_batch_norm(factory):
        options = {"batch_norm": not plain}
    elif plain:
        raise OptionError(f"The model {base!r} has no variant without batch norm; choose {base!r}.")
    else:
        options = {}
    return _Recipe(name, factory, facts.get("init"), shape, num_classes, options)


def _by_shape(shape: tuple[int, ...]) -> str:
    """What ``auto`` means for examples of this shape."""
    if len(shape) == 1:
        return "mlp"
    return "lenet" if shape in ((1, 28, 28), (1, 32, 32)) else "small_cnn"


def _takes_batch_norm(factory: Callable[..., Any]) -> bool:
    return "batch_norm" in inspect.signature(factory).parameters


@contextmanager
def _private_generator(generator: torch.Generator) -> Iterator[None]:
    """Within this torch's global generators are seeded from ``generator``; afterwards they are as before."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(int(torch.randint(2**63 - 1, (), generator=generator, device=generator.device)))
        yield


def _is_restorable(model: nn.Module) -> bool:
    """Whether a state dict restores all tensors of an outlined model: parameters and persistent buffers."""
    for module in model.modules():
        attributes = [value for name, value in vars(module).items() if name not in ("_parameters", "_buffers")]
        passing = [module._buffers[name] for name in module._non_persistent_buffers_set]
        if any(tensor.is_meta for tensor in _tensors([*attributes, passing])):
            return False
    return True


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in a value: itself, or in lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _tensors(entry)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def init_norms(model: nn.Module) -> None:
    """Batch norms start as the identity with empty statistics; this involves no randomness."""
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_parameters()


def init_default(model: nn.Module, generator: torch.Generator) -> None:
    """The distributions that torch gives to Linear and Conv2d layers by default.

    Weights and biases are uniform in ±1/sqrt(fan_in); for weights this is Kaiming's uniform with a = sqrt(5).
    """
    init_norms(model)
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.kaiming_uniform_(module.weight, a=math.sqrt(5), generator=generator)
            if module.bias is not None:
                bound = 1 / math.sqrt(module.weight[0].numel())
                nn.init.uniform_(module.bias, -bound, bound, generator=generator)
