"""A name for every method and weighting: one decorator line in its file, and users may add their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from wrssl.api import OptionError

T = TypeVar("T")
Class = TypeVar("Class", bound=type)


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


def option_names(cls: type) -> list[str]:
    """The names of the keyword options of a class."""
    return list(option_hints(cls))


class Registry(Generic[T]):
    """Names to classes, with errors that list what exists."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[Class], Class]:
        """Decorator: the class is available under ``name`` from now on."""

        def keep(cls: Class) -> Class:
            known = self._classes.get(name)
            # The same class again (a reloaded module, a notebook cell run twice) is fine; another one is a mistake.
            if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise OptionError(f"The {self.what} {name!r} exists already; register yours under another name.")
            self._classes[name] = cls
            return cls

        return keep

    def names(self) -> list[str]:
        """All names, in the order of registration."""
        return list(self._classes)

    def get(self, name: str) -> type[T]:
        """The class of that name."""
        if name not in self._classes:
            raise OptionError(f"There is no {self.what} {name!r}; choose one of {', '.join(self._classes)}.")
        return self._classes[name]

    def create(self, name: str, options: dict[str, Any] | None = None) -> T:
        """An instance of the class of that name; an option it does not know is an error that lists those it knows."""
        cls, options = self.get(name), options or {}
        hints = option_hints(cls)
        for option, value in options.items():
            if option not in hints:
                known = ", ".join(hints) or "none"
                raise OptionError(f"The {self.what} {name!r} has no option {option!r}; its options are: {known}.")
            if not _fits(value, hints[option]):
                raise OptionError(f"The option {option!r} must be {_words(hints[option])}, not {value!r}.")
        return cls(**options)


_SIMPLE = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "null"}


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) or (hint,)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value suits an annotation made of simple types; any other annotation accepts everything."""
    kinds = _kinds(hint)
    if not all(kind in _SIMPLE for kind in kinds):
        return True
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, tuple(kinds)) or (isinstance(value, int) and float in kinds)


def _words(hint: Any) -> str:
    return " or ".join(_SIMPLE[kind] for kind in _kinds(hint))
