"""``wrssl fit`` without options is ``wrssl.fit`` without options."""

from __future__ import annotations

import inspect
import json
import re
import sys

import pytest

import wrssl
from wrssl.cli import main
from wrssl.config import FitConfig
from wrssl.training import plan_run

NEVER_STORED = {"scenario", "out", "progress", "callbacks", "resume"}
NOT_ON_THE_COMMAND_LINE = {"scenario", "progress", "callbacks", "resume"}  # --resume RUN is another option


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["wrssl", "fit", "--scenario", "moons", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.fixture
def planned(monkeypatch, capsys):
    """``planned(*arguments)``: settings and models of the run that the command would do."""

    def plan(*arguments):
        assert run(monkeypatch, *arguments, "--dry-run", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        return found["config"], found["models"]

    return plan


def test_both_have_the_same_defaults(planned):
    config, models = planned()
    expected = plan_run(wrssl.load_scenario("moons"), FitConfig())
    assert config == json.loads(json.dumps(expected["config"]))
    assert models == expected["models"]
    assert config["weights"] == "wr"
    assert config["fallback"] is True
    assert set(inspect.signature(wrssl.fit).parameters) - NEVER_STORED <= set(config)


def test_every_option_of_fit_has_a_flag(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")
    assert run(monkeypatch, "--help") == 0
    flags = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    options = set(inspect.signature(wrssl.fit).parameters) - NOT_ON_THE_COMMAND_LINE
    several = {"method_options": "method_option", "weight_options": "weight_option"}  # given once for each
    assert {f"--{several.get(name, name).replace('_', '-')}" for name in options} <= flags


@pytest.mark.parametrize(("arguments", "fallback"), [(["--no-fallback"], False), (["--fallback"], True)])
def test_the_fallback_can_be_switched_off(arguments, fallback, planned):
    config, models = planned(*arguments)
    assert config["fallback"] is fallback
    assert len(models) == (3 if fallback else 1)


@pytest.mark.parametrize("fallback", [True, False])
def test_the_metrics_tell_about_the_fallback(fallback, monkeypatch, capsys):
    arguments = ["--method", "entmin", "--steps", "3", "--json", *([] if fallback else ["--no-fallback"])]
    assert run(monkeypatch, *arguments) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["fallback_steps"] == (6 if fallback else 0)
    assert (metrics["chosen"] in ("weighted", "plain", "supervised")) == fallback
    assert ("candidates" in metrics) == fallback
