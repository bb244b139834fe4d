"""``FitConfig``: every option of a run, once, with its type, default, help text and check.

``wrssl.fit``, the dry run, the audit, the comparison on resume, ``config.json``, ``WRSSLClassifier`` and the command
line take their options from here, so a new option is one more field. It loads neither torch nor a room of the package.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from wrssl.errors import OptionError

if TYPE_CHECKING:
    import torch
    from torch import nn

DEFAULT_WEIGHTS = "wr"
OWN_MODULE, ARRAY = "own module", "array"  # what config.json says of things that only the caller has
NO_EMBEDDER = "none"
SAME, PROGRAM, PLACE, FREE = "same", "program", "place", "free"
Check = Callable[[str, Any], None]


@dataclass(frozen=True)
class OptionFacts:
    """What is known about an option beside its type and its default.

    Attributes:
        help: one or more sentences, for ``help()`` and the command line.
        check: called with name and value; raises an ``OptionError``.
        resume: ``"same"``: a run goes on with this value only; ``"program"``: with another value the result may differ
            in the last bits, which is said; ``"place"``: it may change; ``"free"``: it is not stored in config.json.
        formerly: the value of runs by older versions, which did not have the option; ``...`` for the default.
        typed: the type that the command line reads, where it does not follow from the annotation; None hides the option
            from the command line.
        flag: the option's name there, where it is not that of the field.
        estimator: whether ``WRSSLClassifier`` has it under the same name.
        audit: whether ``wrssl.audit`` has it.
    """

    help: str
    check: Check | None = None
    resume: str = SAME
    formerly: Any = ...
    typed: Any = "annotation"
    flag: str | None = None
    estimator: bool = True
    audit: bool = True


def option(default: Any, help: str, check: Check | None = None, *, kw_only: bool = True, **facts: Any) -> Any:
    """A field of ``FitConfig``."""
    return field(default=default, kw_only=kw_only, metadata={"option": OptionFacts(help, check, **facts)})


def whole(least: int, why: str = "") -> Check:
    """Whole numbers from ``least`` on, or None where that is the default."""

    def check(name: str, value: Any) -> None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < least):
            raise OptionError(f"{name} must be a whole number of at least {least}{why}, not {value!r}.")

    return check


def between(low: float, high: float, what: str) -> Check:
    """Numbers in [low, high]."""

    def check(name: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
            raise OptionError(f"{name} is {what}, from {low:g} to {high:g}, not {value!r}.")

    return check


def one_of(*names: str | None) -> Check:
    """These values; None is the default where it is among them."""

    def check(name: str, value: Any) -> None:
        if value not in names:
            words = " or ".join(repr(known) for known in names if known is not None)
            leave = ", or leave it out" if None in names else ""
            raise OptionError(f"There is no {name} {value!r}; choose {words}{leave}.")

    return check


def _steps(name: str, value: Any) -> None:
    if value != "auto":
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise OptionError(f"steps must be a whole number or 'auto', not {value!r}.")
        whole(1)(name, value)


def _positive(name: str, value: Any) -> None:
    if value is not None and not (isinstance(value, Real) and 0 < float(value) < math.inf):
        raise OptionError(f"{name} must be a number above 0, not {value!r}.")


def _not_negative(name: str, value: Any) -> None:
    if value is not None and not (isinstance(value, Real) and 0 <= float(value) < math.inf):
        raise OptionError(f"{name} must be a number of at least 0, not {value!r}.")


@dataclass(frozen=True)
class FitConfig:
    """The options of one run, checked; see the help text of each field."""

    model: str | nn.Module = option(
        "auto",
        "auto (by the data's shape), mlp, lenet, small_cnn, wrn-28-2, each also with -nobn, or a registered name; "
        "from Python any nn.Module whose last layer is Linear, which itself is not changed.",
        kw_only=False,
    )
    method: str = option("vat", "The base method; see: wrssl methods.", kw_only=False)
    weights: str = option(DEFAULT_WEIGHTS, "The weighting of the pool; see: wrssl methods.", kw_only=False)
    bn: str = option(
        "weighted",
        "Which statistics the passes over the pool use: batch, frozen, eval or weighted.",
        one_of("batch", "frozen", "eval", "weighted"),
        kw_only=False,
        audit=False,
    )
    steps: int | str = option(
        "auto",
        "Optimizer steps; auto is 2,000 for named scenarios, and for own data chosen from its size and a measured step "
        "time, at most two minutes on this machine.",
        _steps,
        kw_only=False,
        typed=str,
    )
    seed: int = option(0, "Every random number follows from it.", whole(0), kw_only=False, estimator=False)
    gate: str | None = option(
        None,
        "cosine leaves the pool out of every step in which its gradient opposes that of the labels.",
        one_of(None, "cosine"),
        kw_only=False,
    )
    fallback: bool = option(
        True,
        "With a guarded weighting (wr), also train a plain and a supervised model and return the best of the three on "
        "the select half of the validation set; takes two to three times as long, and needs 30 select examples.",
        kw_only=False,
        estimator=False,  # it holds no labels out, so there is nothing to choose by
        audit=False,
    )
    out: str | os.PathLike[str] | None = option(
        None,
        "A new run directory to write everything into.",
        kw_only=False,
        resume=FREE,
        estimator=False,
        audit=False,
    )
    device: str | torch.device | None = option(
        None, "For example cpu or cuda; default a GPU where there is one.", kw_only=False, resume=PLACE
    )
    method_options: dict[str, Any] | None = option(
        None, "Options of the method, for example eps=3.0.", typed=list[str], flag="--method-option"
    )
    weight_options: dict[str, Any] | None = option(
        None, "Options of the weighting, for example K=20.", typed=list[str], flag="--weight-option"
    )
    embedder: Any = option(
        "auto",
        "Makes rows of photographs and texts: lite0, lite1, lite2, minilm, two joined by +, onnx:FILE, hf:DIR-or-id, "
        "timm:NAME, a registered name, from Python also an nn.Module or a function; none takes pixels. auto takes "
        "lite0 for folders and paths of photographs and minilm for texts.",
        typed=str,
        formerly=NO_EMBEDDER,
    )
    views: int | None = option(
        None,
        "Augmented versions of each photograph that are embedded too, for methods that compare views (pi, mt, uda, "
        "fixmatch, mixmatch); default 4 for these, and none for others.",
        whole(0),
    )
    batch_size: int = option(
        100,
        "Of the labeled, the unlabeled and the validation batch, each.",
        whole(2, ", since batch norm needs statistics"),
    )
    lr: float | None = option(None, "Learning rate; default the method's.", _positive)
    weight_decay: float | None = option(
        None,
        "Adds this times half the sum of squared parameters to the loss; default 0, for the model linear 1/(10 n) with "
        "n labels, as in logistic regression with C=10.",
        _not_negative,
    )
    budget: str = option(
        "halves",
        "halves splits the validation set into a meta and a select half; paper uses all of it for both.",
        one_of("halves", "paper"),
        estimator=False,
    )
    head: str | None = option(None, "The name of the last layer of your own module, where tracing cannot find it.")
    progress: bool | None = option(
        None,
        "Show a progress bar; default where standard error is a terminal; with False the run is silent.",
        resume=FREE,
        typed=None,
        estimator=False,
    )
    callbacks: Sequence[Any] = option(
        (),
        "Of wrssl.Callback; they get the trainer and can end the run.",
        resume=FREE,
        typed=None,
        estimator=False,
        audit=False,
    )
    resume: bool = option(False, "Continue the run in out.", resume=FREE, typed=None, estimator=False, audit=False)
    threads: int | None = option(
        None,
        "Of torch, while this runs; default one for small networks and all that torch may use for others.",
        whole(1),
    )
    fast: bool = option(
        True,
        "Use fused kernels and the native weighted batch norm where they apply; without them the same numbers up to "
        "rounding, layer by layer.",
    )
    false_drop_rate: float = option(
        0.05,
        "The share of members that belong which may get the verdict drop.",
        between(0, 0.5, "a share of members that belong"),
    )
    devices: int = option(
        1,
        "Processes that share the passes, one per device; more than one runs your program that many times.",
        whole(1),
        resume=PLACE,
        estimator=False,
        audit=False,
    )
    strategy: str = option(
        "auto", "How several devices share a run: auto, which is ddp.", resume=PLACE, estimator=False, audit=False
    )
    precision: str = option(
        "32-true",
        "32-true, or bf16-mixed: passes through the backbone in bfloat16.",
        one_of("32-true", "bf16-mixed"),
    )

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            check = facts_of(each).check
            if check is not None:
                check(each.name, getattr(self, each.name))

    def stored(self) -> dict[str, Any]:
        """What config.json says about the options; what only the caller has is named, not stored."""
        values: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in dataclasses.fields(self) if facts_of(each).resume != FREE
        }
        given = values["weight_options"] or {}
        return values | {
            "model": self.model if isinstance(self.model, str) else OWN_MODULE,
            "method_options": self.method_options or {},
            "weight_options": {name: value if _is_plain(value) else ARRAY for name, value in given.items()},
            "device": None if self.device is None else str(self.device),
            "embedder": self.embedder if isinstance(self.embedder, str) else NO_EMBEDDER,
        }

    @classmethod
    def of_stored(cls, stored: dict[str, Any], **changes: Any) -> FitConfig:
        """The options of the run whose config.json this is; one that an older version did not have has its default."""
        names = [each.name for each in dataclasses.fields(cls) if facts_of(each).resume != FREE]
        values = {name: stored[name] for name in names if name in stored}
        for each in dataclasses.fields(cls):
            if each.name not in stored and facts_of(each).formerly is not ...:
                values[each.name] = facts_of(each).formerly
        if not stored.get("lr_given", True):  # every model of the fallback then has the rate of its own method
            values["lr"] = None
        return cls(**values | changes)

    def but(self, **changes: Any) -> FitConfig:
        """The same options with some of them changed."""
        return dataclasses.replace(self, **changes)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(entry) for entry in value)
    return value is None or isinstance(value, (str, bool, Real))


def facts_of(each: dataclasses.Field[Any]) -> OptionFacts:
    """Of a field of ``FitConfig``."""
    facts: OptionFacts = each.metadata["option"]
    return facts


def options(leave_out: Sequence[str] = ()) -> list[dataclasses.Field[Any]]:
    """The fields of ``FitConfig``, without some."""
    return [each for each in dataclasses.fields(FitConfig) if each.name not in leave_out]


def left_out(door: str) -> list[str]:
    """The names of the options that ``"estimator"`` or ``"audit"`` does not have."""
    return [each.name for each in options() if not getattr(facts_of(each), door)]


def parameters(leave_out: Sequence[str] = ()) -> list[inspect.Parameter]:
    """The options as parameters of a function, with their defaults and annotations."""
    found = []
    for each in options(leave_out):
        kind = inspect.Parameter.KEYWORD_ONLY if each.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        found.append(inspect.Parameter(each.name, kind, default=each.default, annotation=each.type))
    return found


def in_docstring(leave_out: Sequence[str] = ()) -> str:
    """The options as the lines of an ``Args:`` section."""
    return "\n".join(f"    {each.name}: {facts_of(each).help}" for each in options(leave_out))


P = ParamSpec("P")
D = TypeVar("D")
R = TypeVar("R")


def takes_options(
    config: Callable[P, FitConfig], leave_out: Sequence[str] = ()
) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, P], R]]:
    """Decorator of ``run(data, config, *, more)``: callers give the options as keywords and see all in the signature.

    Type checkers and editors read the signature from ``config``, ``help()`` and notebooks from the function itself.

    Args:
        config: ``FitConfig``.
        leave_out: options that the function does not have.
    """

    def decorate(run: Callable[..., R]) -> Callable[Concatenate[Any, P], R]:
        first, _, *own = inspect.signature(run).parameters.values()
        whole_list = [first, *parameters(leave_out), *own]
        signature = inspect.Signature(whole_list, return_annotation=run.__annotations__.get("return"))

        @functools.wraps(run)
        def call(*args: Any, **kwargs: Any) -> R:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise TypeError(f"{run.__name__}() {error}") from None
            data = given.pop(first.name)
            more = {p.name: given.pop(p.name) for p in own if p.name in given}
            return run(data, FitConfig(**given), **more)

        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.cleandoc(run.__doc__ or '')}\n{in_docstring(leave_out)}"
        return call

    return decorate
