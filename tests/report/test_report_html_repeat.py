"""The command and the call that make a run again."""

from __future__ import annotations

import inspect
import shlex

import pytest

import wrssl
from wrssl.evaluate.report import repeat as module
from wrssl.evaluate.report.repeat import repeat

RECIPE = {
    "name": "digits", "ood": "patches", "ratio": 0.5, "mode": "replace", "seed": 3, "clean": False,
    "labels_per_class": None, "validation_size": None,
}  # fmt: skip
CONFIG = {
    "scenario": RECIPE, "model": "auto", "method": "vat", "method_options": {}, "weights": "wr", "weight_options": {},
    "bn": "weighted", "gate": None, "fallback": True, "seed": 3, "batch_size": 100, "lr": 3e-3, "lr_given": False,
    "budget": "halves", "head": None, "device": "cpu", "fast": True, "steps": 200, "threads": 2,
    "false_drop_rate": 0.05,
}  # fmt: skip


def called(python, monkeypatch):
    """What the call from Python would do: the arguments of the scenario and of fit."""
    found = {}
    monkeypatch.setattr(wrssl, "load_scenario", lambda *a, **k: found.setdefault("load", (a, k)))
    monkeypatch.setattr(wrssl, "fit", lambda *a, **k: found.setdefault("fit", (a, k)))
    exec(python, {})
    return found


def test_defaults_are_those_of_the_functions():
    read = wrssl.Scenario.from_folders
    for function, stated in ((wrssl.fit, module.FIT), (wrssl.load_scenario, module.LOAD), (read, module.FROM_FOLDERS)):
        parameters = inspect.signature(function).parameters
        for name, value in stated.items():
            default = parameters[name].default
            assert value == ({} if name.endswith("_options") else default), name
    left_out = set(inspect.signature(wrssl.fit).parameters) - set(module.FIT) - set(module.ALWAYS)
    assert left_out == {"scenario", "out", "progress", "callbacks", "resume"}


def test_a_named_scenario_is_one_short_command():
    assert repeat(CONFIG)["command"] == (
        "wrssl fit --scenario digits --ood patches --steps 200 --seed 3 --threads 2 --device cpu --out RUN"
    )


def test_what_differs_from_the_defaults_is_said(monkeypatch):
    scenario = {**RECIPE, "ratio": 0.25, "clean": True, "validation_size": 50, "unlabeled_size": 90}
    options = {"method_options": {"eps": 1.5, "kl": "oliver"}, "weight_options": {"kinds": "3", "refine": False}}
    config = {**CONFIG, **options, "scenario": scenario, "fallback": False, "lr_given": True, "gate": "cosine"}
    found = repeat(config)
    words = shlex.split(found["command"])
    for option, value in (
        ("--ratio", "0.25"), ("--validation-size", "50"), ("--unlabeled-size", "90"), ("--lr", "0.003"),
        ("--gate", "cosine"), ("--method-option", "eps=1.5"), ("--weight-option", 'kinds="3"'),
    ):  # fmt: skip
        assert words[words.index(option) + 1] == value
    assert "kl=oliver" in words
    assert "refine=false" in words
    assert {"--clean", "--no-fallback"} < set(words)
    made = called(found["python"], monkeypatch)
    assert made["load"] == (
        ("digits",),
        {"ood": "patches", "ratio": 0.25, "seed": 3, "clean": True, "validation_size": 50, "unlabeled_size": 90},
    )
    expected = {
        k: config[k]
        for k in ("method_options", "weight_options", "fallback", "lr", "gate", "steps", "seed", "threads", "device")
    }
    assert made["fit"][1] == expected


def test_the_options_exist():
    from wrssl.cli import app  # noqa: F401
    from wrssl.cli.fit import fit

    options = set(inspect.signature(fit).parameters)
    for name in (*module.FIT, *module.ALWAYS, *module.LOAD, *module.FOLDERS):
        if name not in ("head", "method_options", "weight_options"):
            assert name in options, name
    assert {"method_option", "weight_option", "scenario", "ood", "out"} <= options


def test_folders_are_quoted():
    folders = {
        "labeled": "my labels",
        "unlabeled": "$(rm -rf x)",
        "validation": None,
        "image_size": [64, 64],
        "seed": 3,
    }
    folders |= {"test": None, "channels": None, "cache_dir": None, "max_pixels": 100_000_000, "augment": None}
    found = repeat({**CONFIG, "scenario": {"name": "own data", "folders": folders}})
    words = shlex.split(found["command"])
    assert words[:8] == ["wrssl", "fit", "--labeled", "my labels", "--unlabeled", "$(rm -rf x)", "--image-size", "64"]
    assert words.count("--seed") == 1
    assert "from_folders(labeled='my labels', unlabeled='$(rm -rf x)', image_size=64, seed=3)" in found["python"]
    assert found["missing"] is None


def own(**folders):
    return {"scenario": {"name": "own data", "folders": {"labeled": "a", "unlabeled": "b", "seed": 3, **folders}}}


@pytest.mark.parametrize(
    "change", [{"head": "fc"}, {"seed": 4}, own(channels=1), own(image_size=[32, 48]), own(seed=1)]
)
def test_what_the_command_line_cannot_say_is_said_in_python(change):
    found = repeat({**CONFIG, **change})
    assert found["command"] is None
    assert "wrssl.fit(scenario" in found["python"]
    assert found["missing"] is None


def test_sizes_of_images_as_they_were_given():
    assert "image_size=(32, 48)" in repeat({**CONFIG, **own(image_size=[32, 48])})["python"]
    assert "image" not in repeat({**CONFIG, **own(image_size=[32, 32])})["command"]


@pytest.mark.parametrize(
    ("change", "words", "call"),
    [
        ({"scenario": {"name": "own data"}}, "the data", "wrssl.Scenario(...)"),
        ({"model": "own module"}, "the module", "model=..."),
        ({"weight_options": {"embedding": "array", "K": 5}}, "the arrays", "{'embedding': ..., 'K': 5}"),
    ],
)
def test_what_only_the_caller_has_are_dots(change, words, call):
    found = repeat({**CONFIG, **change})
    assert found["command"] is None
    assert words in found["missing"]
    assert call in found["python"]
