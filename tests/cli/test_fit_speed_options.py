"""``wrssl fit --threads N --no-fast``: they reach the run and are remembered by it."""

from __future__ import annotations

import json
import sys

import pytest

from wrssl.cli import main


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["wrssl", "fit", "--scenario", "moons", "--steps", "2", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize(
    ("arguments", "threads", "fast"),
    [
        ([], 1, True),  # one thread is right for a network as small as this
        (["--threads", "3"], 3, True),
        (["--no-fast"], 1, False),
        (["--fast", "--threads", "1"], 1, True),
    ],
)
def test_they_reach_fit(arguments, threads, fast, monkeypatch, capsys):
    assert run(monkeypatch, *arguments, "--dry-run", "--json") == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert config["threads"] == threads
    assert config["fast"] is fast


def test_the_run_remembers_them(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, "--threads", "1", "--no-fast", "--out", str(tmp_path / "RUN")) == 0
    config = json.loads((tmp_path / "RUN" / "config.json").read_text())
    assert config["threads"] == 1
    assert config["fast"] is False


def test_no_thread_at_all_is_one_sentence_and_leaves_nothing(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, "--threads", "0", "--out", str(tmp_path / "RUN")) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert "threads must be a whole number of at least 1" in printed.err
    assert not (tmp_path / "RUN").exists()
