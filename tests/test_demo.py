"""The demo: sentences that follow from numbers, and progress on a terminal only."""

from __future__ import annotations

import json

import pytest

from wrssl import demo, progress


@pytest.mark.parametrize(
    ("accuracies", "sentences"),
    [
        (
            (0.90, 0.85, 0.93),
            "The pool hurt plain VAT by 5.0 points against the labels alone. "
            "Weights that find the patches change that by +8.0 points.",
        ),
        (
            (0.85, 0.90, 0.90),
            "The pool helped plain VAT by 5.0 points against the labels alone. "
            "Weights did not improve it here (+0.0 points).",
        ),
        (
            (0.90, 0.90, 0.85),
            "The pool helped plain VAT by 0.0 points against the labels alone. "
            "Weights did not improve it here (-5.0 points).",
        ),
    ],
)
def test_the_summary_follows_from_the_numbers(accuracies, sentences):
    assert demo.summary(*accuracies) == sentences


@pytest.mark.parametrize("watched", [False, True])
def test_a_small_demo(watched, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "DIGIT_STEPS", 1)
    monkeypatch.setattr(demo, "MOON_STEPS", 1)
    wanted = (demo.LABELS_ONLY, demo.PLAIN, demo.ROBUST)
    monkeypatch.setattr(demo, "DIGITS", {label: demo.DIGITS[label] for label in wanted})
    monkeypatch.setattr(demo, "MOONS", dict([*demo.MOONS.items()][:1]))
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: watched)
    demo.run_demo(tmp_path / "new", 0)
    shown = capsys.readouterr()
    assert (f"training: {demo.ROBUST}" in shown.err) == watched
    assert bool(shown.err) == watched, "standard error stays empty where progress is not watched"
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"table.json", "report.html", "moons.png"}
    rows = json.loads((tmp_path / "new" / "table.json").read_text())
    assert [row["run"] for row in rows] == [*wanted]
    accuracy = [row["test_accuracy"] for row in rows]
    assert demo.summary(*accuracy) in shown.out
    assert " labeled digits, a pool of " in shown.out
