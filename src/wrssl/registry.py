"""One registry each for methods, weightings, priors, solvers, models and data sources, open to code from outside.

A name is registered by a decorator, in the package or in a file of the user's own (``--plugin FILE.py``)::

    @wrssl.register_weighting("mine")
    class Mine(Weighting): ...

What comes with the package is registered when its room is imported, which happens at the first look-up.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_type_hints

from wrssl.errors import OptionError

if TYPE_CHECKING:
    from wrssl.api import Method, Weighting

T = TypeVar("T")
Entry = TypeVar("Entry")


class Registry(Generic[T]):
    """Names to entries, with errors that list what exists.

    Args:
        what: the word for an entry in messages.
        room: the package that registers the built-in entries when it is imported.
    """

    def __init__(self, what: str, room: str) -> None:
        self.what, self.room = what, room
        self._entries: dict[str, T] = {}
        self._facts: dict[str, dict[str, Any]] = {}

    def register(self, name: str, **facts: Any) -> Callable[[Entry], Entry]:
        """Decorator: the entry is available under ``name`` from now on; ``facts`` are what its room asks about it."""

        def keep(entry: Entry) -> Entry:
            known = self._entries.get(name)
            # The same entry again (a reloaded module, a notebook cell run twice) is fine; another one is a mistake.
            if known is not None and _identity(known) != _identity(entry):
                raise OptionError(f"The {self.what} {name!r} exists already; register yours under another name.")
            self._entries[name] = entry  # type: ignore[assignment]  # the decorator returns what it is given
            self._facts[name] = facts
            return entry

        return keep

    def names(self) -> list[str]:
        """All names, in the order of registration."""
        importlib.import_module(self.room)
        return list(self._entries)

    def get(self, name: str) -> T:
        """The entry of that name."""
        if name not in self._entries:
            known = self.names()
            if name not in known:
                raise OptionError(
                    f"There is no {self.what} {name!r}; choose one of {', '.join(known)}, or register one of your own."
                )
        return self._entries[name]

    def facts(self, name: str) -> dict[str, Any]:
        """What was registered beside the entry."""
        self.get(name)
        return self._facts[name]

    def create(self, name: str, options: dict[str, Any] | None = None) -> Any:
        """An instance of the class of that name; an option it does not know is an error that lists those it knows."""
        entry: Any = self.get(name)
        options, hints = options or {}, option_hints(entry)
        for option, value in options.items():
            if option not in hints:
                known = ", ".join(hints) or "none"
                raise OptionError(f"The {self.what} {name!r} has no option {option!r}; its options are: {known}.")
            if not fits(value, hints[option]):
                raise OptionError(f"The option {option!r} must be {in_words(hints[option])}, not {value!r}.")
        missing = ", ".join(sorted(getattr(entry, "__abstractmethods__", ())))
        if missing:
            raise OptionError(
                f"The {self.what} {name!r} does not define {missing}; see the contract in wrssl.api, and "
                "docs/migration-0.2.md if it was written for version 0.1.0."
            )
        return entry(**options)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Within this, entries may be registered that are gone afterwards: for tests and notebooks."""
        self.names()
        before = dict(self._entries), dict(self._facts)
        try:
            yield
        finally:
            self._entries, self._facts = before


def _identity(entry: Any) -> tuple[Any, Any]:
    return getattr(entry, "__module__", None), getattr(entry, "__qualname__", entry)


METHODS: Registry[type[Method]] = Registry("method", "wrssl.methods")
WEIGHTINGS: Registry[type[Weighting]] = Registry("weighting", "wrssl.weighting")
PRIORS: Registry[Callable[..., Any]] = Registry("kind of prior", "wrssl.priors")
SOLVERS: Registry[Callable[..., Any]] = Registry("solver", "wrssl.hypergrad")
MODELS: Registry[Callable[..., Any]] = Registry("model", "wrssl.models")
SOURCES: Registry[Callable[..., Any]] = Registry("scenario", "wrssl.data")

# One assignment per name, each with a docstring, so that the reference in the documentation finds them.
register_method = METHODS.register
"""Decorator of a class: a ``wrssl.api.Method`` is available as ``method="name"``."""
register_weighting = WEIGHTINGS.register
"""Decorator of a class: a ``wrssl.api.Weighting`` is available as ``weights="name"``."""
register_prior = PRIORS.register
"""Decorator of a function: from labeled rows, labels and pool rows to a score of rows, for the option ``kinds``."""
register_solver = SOLVERS.register
"""Decorator of a function: ``solve(matvec, b)`` returns x with ``matvec(x)`` close to b, for ``solver="name"``."""
register_model = MODELS.register
"""Decorator of a function: from input shape and number of classes to a module, for ``model="name"``."""
register_source = SOURCES.register
"""Decorator of a function: from a ``Request`` to the ``Parts`` of a scenario, for ``load_scenario("name")``."""
list_methods = METHODS.names
"""The names of all methods."""
list_weightings = WEIGHTINGS.names
"""The names of all weightings."""


def load_plugin(path: str | Path) -> None:
    """Run a user's own Python file once, so that what it registers can be chosen by name."""
    file = Path(path).resolve()
    name = f"wrssl_plugin_{file.stem}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(file):
        return
    if not file.is_file():
        raise OptionError(f"There is no plugin {path}; give the path of a Python file that registers something.")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise OptionError(f"The plugin {path} is no Python file; give one that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs, so that its classes can be found by the name of their module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        if isinstance(error, OptionError):
            raise
        raise OptionError(
            f"The plugin {path} fails ({type(error).__name__}: {error}); mend it and try again."
        ) from error


def option_hints(cls: type) -> dict[str, Any]:
    """The keyword options of a class with their annotations, those that it hands on to its parents included."""
    hints: dict[str, Any] = {}
    for parent in cls.__mro__:
        if "__init__" in parent.__dict__ and parent is not object:
            init = parent.__dict__["__init__"]
            annotations, parameters = get_type_hints(init), list(inspect.signature(init).parameters.values())[1:]
            for p in parameters:
                if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                    hints.setdefault(p.name, annotations.get(p.name, Any))
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
    return hints


_SIMPLE = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "null"}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value suits an annotation made of simple types; any other annotation accepts everything."""
    kinds = get_args(hint) or (hint,)
    if not all(kind in _SIMPLE for kind in kinds):
        return True
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, tuple(kinds)) or (isinstance(value, int) and float in kinds)


def in_words(hint: Any) -> str:
    """An annotation made of simple types, in words."""
    return " or ".join(_SIMPLE[kind] for kind in get_args(hint) or (hint,))
