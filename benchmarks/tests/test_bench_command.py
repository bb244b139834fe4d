"""``wrssl bench`` as a user meets it."""

from __future__ import annotations

import json
import sys

import pytest

from wrssl.cli import main


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["wrssl", "bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr()


def test_json_alone_on_standard_output(monkeypatch, capsys):
    code, printed = run(monkeypatch, capsys, "--json", "--only", "help_seconds")
    assert code == 0
    found = json.loads(printed.out)
    assert found["help_seconds"]["median"] > 0
    assert "wr_over_base_vat" not in found
    assert "help_seconds" in printed.err


def test_an_unknown_key_is_one_sentence(monkeypatch, capsys):
    code, printed = run(monkeypatch, capsys, "--json", "--only", "speed")
    assert code == 2
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert "'speed'; choose from wr_over_base_vat" in printed.err
