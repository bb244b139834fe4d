"""``wrssl fit`` without options is ``wrssl.fit`` without options."""

from __future__ import annotations

import inspect
import json
import sys

import pytest

import wrssl
from wrssl.cli import main

FIT = {name: p.default for name, p in inspect.signature(wrssl.fit).parameters.items()}


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["wrssl", "fit", "--scenario", "moons", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def given(monkeypatch, *arguments):
    """What the command hands to ``fit``."""
    options = {}

    def fit(scenario, **handed):
        options.update(handed)
        raise wrssl.api.OptionError("enough")

    monkeypatch.setattr(wrssl, "fit", fit)
    assert run(monkeypatch, *arguments) == 2
    return options


def test_both_have_the_same_defaults(monkeypatch):
    options = given(monkeypatch)
    empty = {"method_options": {}, "weight_options": {}}  # as good as None
    assert options == {**{name: FIT[name] for name in options}, **empty}
    assert options["weights"] == "wr"
    assert options["fallback"] is True


@pytest.mark.parametrize(("arguments", "fallback"), [(["--no-fallback"], False), (["--fallback"], True)])
def test_the_fallback_can_be_switched_off(arguments, fallback, monkeypatch):
    assert given(monkeypatch, *arguments)["fallback"] is fallback


@pytest.mark.parametrize("fallback", [True, False])
def test_the_metrics_tell_about_the_fallback(fallback, monkeypatch, capsys):
    arguments = ["--method", "entmin", "--steps", "3", "--json", *([] if fallback else ["--no-fallback"])]
    assert run(monkeypatch, *arguments) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["fallback_steps"] == (6 if fallback else 0)
    assert (metrics["chosen"] in ("weighted", "plain", "supervised")) == fallback
    assert ("candidates" in metrics) == fallback
