"""The command and the call that make a run again."""

from __future__ import annotations

import inspect
import shlex

import pytest

import wrssl
from wrssl.config import FREE, FitConfig, facts_of, options
from wrssl.evaluate.report.repeat import FOLDERS, repeat

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


STORED = {each.name: each for each in options() if facts_of(each).resume != FREE}


@pytest.mark.parametrize("name", STORED)
def test_every_stored_option_is_said_where_it_is_not_the_default(name):
    """A new option of a run needs no change here."""
    default, other = FitConfig().stored()[name], {"other": 1} if name.endswith("_options") else "other"
    always = name in ("steps", "seed", "threads", "device")
    config = {**CONFIG, "lr_given": True, "scenario": {"name": "own data"}}
    for value, said in ((default, always), (other, True)):
        call = repeat({**config, name: value})["python"].splitlines()[-1]
        assert (f"{name}={value!r}" in call) == said
        assert (f" {name}=" in call) == said
    assert set(CONFIG) - {"scenario", "lr_given"} <= set(STORED)


@pytest.mark.parametrize(
    ("function", "where", "has_default"),
    [
        (wrssl.load_scenario, lambda given: {**RECIPE, **given}, ["ratio", "mode", "clean", "unlabeled_size"]),
        (
            wrssl.Scenario.from_folders,
            lambda given: {"name": "own data", "folders": {"labeled": "a", "unlabeled": "b", **given}},
            ["image_size", "max_pixels", "seed"],
        ),
    ],
    ids=["named", "folders"],
)
def test_the_data_is_described_by_what_differs_from_the_defaults(function, where, has_default):
    for name in has_default:
        default = inspect.signature(function).parameters[name].default
        other = 7 if name != "image_size" else [7, 7]
        for value, said in ((default, False), (other, True)):
            found = repeat({**CONFIG, "scenario": where({"seed": 0, name: value})})["python"].splitlines()[2]
            assert (f"{name}=" in found) == said, (name, value)


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
    from typer.main import get_command

    from wrssl.cli import app

    known = {name for option in get_command(app).commands["fit"].params for name in option.opts}
    named = ["--scenario", "--ood", "--ratio", "--mode", "--clean", "--labels-per-class", "--validation-size"]
    always = ["--steps", "--seed", "--threads", "--device", "--method-option", "--weight-option", "--out"]
    folders = [f"--{name.replace('_', '-')}" for name in FOLDERS]
    said = [f"--{name.replace('_', '-')}" for name in STORED if name != "head" and not name.endswith("_options")]
    assert {*named, *always, *folders, *said} - known == set()


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
