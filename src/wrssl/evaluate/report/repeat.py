"""How to make the same run again, from what config.json says."""

from __future__ import annotations

import json
import shlex
from typing import Any

# The defaults of ``wrssl.fit`` and ``wrssl.load_scenario``; what equals them need not be said. A test compares them.
FIT: dict[str, Any] = {
    "model": "auto", "method": "vat", "weights": "wr", "bn": "weighted", "gate": None, "fallback": True,
    "method_options": {}, "weight_options": {}, "batch_size": 100, "lr": None, "budget": "halves", "head": None,
    "fast": True, "false_drop_rate": 0.05, "devices": 1, "strategy": "auto", "precision": "32-true",
}  # fmt: skip
ALWAYS = ("steps", "seed", "threads", "device")  # said in any case: the machine or the data would choose another
LOAD: dict[str, Any] = {
    "ratio": 0.5,
    "mode": "replace",
    "seed": 0,
    "clean": False,
    "labels_per_class": None,
    "validation_size": None,
    "unlabeled_size": None,
}
FOLDERS = ("labeled", "unlabeled", "validation", "test", "image_size", "augment")  # options of the command line
FROM_FOLDERS: dict[str, Any] = {"image_size": 32, "seed": 0, "cache_dir": None, "max_pixels": 100_000_000}
OWN_MODULE, ARRAY = "own module", "array"  # how config.json names what only the caller has
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
    sayable = not missing and _sayable(config, scenario)
    return {
        "command": _command(chosen, scenario) if sayable else None,
        "python": _python(chosen, scenario),
        "missing": " and ".join(missing) or None,
    }


def _chosen(config: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``fit`` that differ from its defaults, and those that are always said."""
    given = {name: config[name] for name in (*FIT, *ALWAYS) if name in config}
    if not config.get("lr_given", True):
        given.pop("lr", None)
    return {k: v for k, v in given.items() if k in ALWAYS or v != FIT[k]}


def _data_options(scenario: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``load_scenario`` or ``from_folders`` that have to be said."""
    if "ratio" in scenario:
        return {k: v for k, v in scenario.items() if k != "name" and (k not in LOAD or v != LOAD[k])}
    given = dict(scenario.get("folders") or {})
    height, width = size if isinstance(size := given.get("image_size"), (list, tuple)) else (size, size)
    given |= {"image_size": height if height == width else (height, width)}
    return {k: v for k, v in given.items() if v is not None and (k not in FROM_FOLDERS or v != FROM_FOLDERS[k])}


def _sayable(config: dict[str, Any], scenario: dict[str, Any]) -> bool:
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
