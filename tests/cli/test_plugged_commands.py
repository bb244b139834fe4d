"""Commands of other distributions: listed always, loaded when they run, one sentence where they are missing."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from typing import Annotated

import pytest
import typer

from wrssl.cli import main


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["wrssl", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr()


class Entry:
    """Stands in for an entry point."""

    def __init__(self, function):
        self.function = function

    def load(self):
        return self.function


@pytest.fixture
def plugged(monkeypatch):
    """What is plugged in under a name; nothing at first. Remembers what was asked for."""
    there, asked = {}, []

    def entry_points(group, name):
        asked.append((group, name))
        return [Entry(there[name])] if name in there else []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    there["asked"] = asked
    return there


@pytest.mark.parametrize(
    ("name", "distribution"), [("reproduce", "wrssl-reproduction"), ("bench", "wrssl-bench")]
)  # fmt: skip
@pytest.mark.parametrize("more", [(), ("--help",), ("fig2", "--seeds", "1")])
def test_a_missing_distribution_is_one_sentence_with_the_pip_command(
    monkeypatch, capsys, plugged, name, distribution, more
):
    code, printed = run(monkeypatch, capsys, name, *more)
    assert code == 2
    assert printed.out == ""
    expected = f"wrssl: {name} comes with its own package; install it with: pip install {distribution}\n"
    assert printed.err == expected


def test_help_lists_the_commands_without_looking_for_them(monkeypatch, capsys, plugged):
    code, printed = run(monkeypatch, capsys, "--help")
    assert code == 0
    listed = [line.split()[0] for line in printed.out.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed[-2:] == ["reproduce", "bench"]
    assert plugged["asked"] == []


def test_a_command_is_called_with_its_arguments(monkeypatch, capsys, plugged):
    def measure(
        what: Annotated[str, typer.Argument()],
        twice: Annotated[bool, typer.Option("--twice", help="Once more.")] = False,
    ) -> None:
        """Measure it."""
        typer.echo(f"{what} {twice}")
        raise typer.Exit(3)

    plugged["bench"] = measure
    code, printed = run(monkeypatch, capsys, "bench", "speed", "--twice")
    assert (code, printed.out) == (3, "speed True\n")
    assert plugged["asked"] == [("wrssl.commands", "bench")]
    code, printed = run(monkeypatch, capsys, "bench", "--help")
    assert code == 0
    assert "Measure it." in printed.out
    assert "Once more." in printed.out
    code, printed = run(monkeypatch, capsys, "bench", "speed", "--thrice")
    assert code == 2
    assert printed.err.startswith("wrssl: No such option")
    assert "bench --help" in printed.err


def test_nothing_of_them_is_imported_for_other_commands():
    code = (
        "import sys, wrssl.cli; from typer.main import get_command; get_command(wrssl.cli.app);"
        "print([m for m in ('torch', 'importlib.metadata', 'wrssl_bench', 'wrssl_reproduction') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
