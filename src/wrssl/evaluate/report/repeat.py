"""How to make the same run again, from what config.json says. What equals a default need not be said."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Callable
from typing import Any

from wrssl.config import ARRAY, OWN_MODULE, FitConfig
from wrssl.data import Scenario, load_scenario

ALWAYS = ("steps", "seed", "threads", "device")  # said in any case: the machine or the data would choose another
FOLDERS = ("labeled", "unlabeled", "validation", "test", "image_size", "augment")  # options of the command line
DOTS = "..."


def repeat(config: dict[str, Any]) -> dict[str, Any]:
    """The command line, where there is one, and the call from Python.

    Returns:
        ``command`` (None where the run cannot be repeated from the command line), ``python``, and ``missing``: what
        only the caller has, in words, or None.
    """
    scenario = dict(config.get("scenario") or {})
    missing = []
    if config.get("model") == OWN_MODULE:
        missing.append("the module")
    if ARRAY in dict(config.get("weight_options") or {}).values():
        missing.append("the arrays among the options")
    if "ratio" not in scenario and not scenario.get("folders"):
        missing.append("the data, which came as arrays")
    chosen = _chosen(config)
    possible = not missing and _is_command(config, scenario)
    return {
        "command": _command(chosen, scenario) if possible else None,
        "python": _python(chosen, scenario),
        "missing": " and ".join(missing) or None,
    }


def _chosen(config: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``fit`` that differ from its defaults, and after them those that are always said."""
    defaults = FitConfig().stored()
    names = [name for name in defaults if name not in ALWAYS]
    given = {name: config[name] for name in (*names, *ALWAYS) if name in config}
    if not config.get("lr_given", True):
        given.pop("lr", None)
    return {name: value for name, value in given.items() if name in ALWAYS or value != defaults[name]}


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


def _data_options(scenario: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``load_scenario`` or ``from_folders`` that have to be said."""
    if "ratio" in scenario:
        given, defaults = {k: v for k, v in scenario.items() if k != "name"}, _defaults(load_scenario)
    else:
        found = dict(scenario.get("folders") or {})
        height, width = size if isinstance(size := found.get("image_size"), (list, tuple)) else (size, size)
        found |= {"image_size": height if height == width else (height, width)}
        given, defaults = {k: v for k, v in found.items() if v is not None}, _defaults(Scenario.from_folders)
    return {k: v for k, v in given.items() if k not in defaults or v != defaults[k]}


def _is_command(config: dict[str, Any], scenario: dict[str, Any]) -> bool:
    """The command line has one seed for data and training, and no option for the head or for rarer ones of folders."""
    folders = scenario.get("folders")
    given = _data_options(scenario)
    known = not folders or all(k in (*FOLDERS, "seed") and not isinstance(v, tuple) for k, v in given.items())
    seed = (folders or scenario).get("seed", config.get("seed"))
    return known and config.get("head") is None and seed == config.get("seed")


def _command(chosen: dict[str, Any], scenario: dict[str, Any]) -> str:
    parts = ["--scenario", scenario["name"]] if "ratio" in scenario else []
    data = {name: value for name, value in _data_options(scenario).items() if name != "seed"}
    for name, value in {**data, **chosen}.items():
        if name in ("method_options", "weight_options"):
            for key, inner in value.items():
                parts += [f"--{name[:-1].replace('_', '-')}", f"{key}={_value(inner)}"]
        elif isinstance(value, bool):
            parts.append(f"--{'' if value else 'no-'}{name.replace('_', '-')}")
        elif value is not None:
            parts += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(["wrssl", "fit", *parts, "--out", "RUN"])


def _value(value: Any) -> str:
    """As the command line reads it: JSON where it is JSON, else the text itself."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        json.loads(value)
    except json.JSONDecodeError:
        return value
    return json.dumps(value)


def _python(chosen: dict[str, Any], scenario: dict[str, Any]) -> str:
    options = _data_options(scenario)
    if "ratio" in scenario:
        data = f"wrssl.load_scenario({_arguments(repr(scenario['name']), options)})"
    else:
        data = f"wrssl.Scenario.from_folders({_arguments('', options)})" if options else f"wrssl.Scenario({DOTS})"
    return f"import wrssl\n\nscenario = {data}\nresult = wrssl.fit({_arguments('scenario', chosen)})"


def _arguments(first: str, named: dict[str, Any]) -> str:
    return ", ".join([*([first] if first else []), *(f"{name}={_literal(value)}" for name, value in named.items())])


def _literal(value: Any) -> str:
    """Python's spelling, with dots for what only the caller has."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_literal(v)}" for k, v in value.items()) + "}"
    return DOTS if value in (OWN_MODULE, ARRAY) else repr(value)
