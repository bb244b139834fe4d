"""A dry run says what would happen and leaves nothing behind."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import wrssl
from wrssl.cli import main


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["wrssl", "fit", "--scenario", "moons", "--dry-run", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr()


def test_the_plan_in_words(monkeypatch, capsys, tmp_path):
    code, printed = run(monkeypatch, capsys, "--steps", "50", "--out", str(tmp_path / "RUN"))
    assert code == 0
    assert "50 steps of vat · wr · weighted" in printed.out
    assert "nothing was written" in printed.out
    assert not (tmp_path / "RUN").exists()


def test_the_plan_as_an_object(monkeypatch, capsys):
    code, printed = run(monkeypatch, capsys, "--steps", "50", "--json", "--no-fallback", "--method", "pl")
    assert code == 0
    plan = json.loads(printed.out)
    assert plan["config"]["steps"] == 50
    assert plan["models"] == ["pl · wr · weighted"]
    assert plan["total_seconds"] == pytest.approx(sum(plan["seconds"].values()))
    assert all(seconds >= 0 for seconds in plan["seconds"].values())
    three = json.loads(run(monkeypatch, capsys, "--steps", "50", "--json")[1].out)
    assert len(three["models"]) == 3


def test_more_steps_take_longer(monkeypatch, capsys):
    totals = [
        json.loads(run(monkeypatch, capsys, "--steps", steps, "--json")[1].out)["total_seconds"]
        for steps in ("100", "100000")
    ]
    assert totals[1] > 10 * totals[0]


def test_a_run_directory_that_is_taken_is_said_now(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    code, printed = run(monkeypatch, capsys, "--steps", "5", "--out", str(tmp_path))
    assert code == 2
    assert "not empty" in printed.err


def test_silence_with_progress_off(capsys):
    random = np.random.default_rng(0)
    data = wrssl.Scenario((random.normal(size=(10, 2)), np.tile([0, 1], 5)), random.normal(size=(20, 2)))
    wrssl.fit(data, weights="none", progress=False)
    assert capsys.readouterr() == ("", "")
    wrssl.fit(data, weights="none")
    assert "steps: 200" in capsys.readouterr().err
