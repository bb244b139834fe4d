"""What is printed where: one flat JSON object, or a table; progress on standard error."""

from __future__ import annotations

import json
import platform

import pytest
import torch

import wrssl
from wrssl.errors import OptionError
from wrssl_bench import report
from wrssl_bench.timing import Figure


@pytest.fixture
def two_keys(monkeypatch):
    """A table of two figures that cost nothing; remembers the threads they were measured with."""
    seen = []

    def number(median, effort):
        seen.append(torch.get_num_threads())
        return Figure(median, 0.25, {"ms": 1 / 3, "pairs": 4})

    table = [
        report.Key("fast", lambda effort: number(1.0, effort), "a figure that holds", at_most=1.5),
        report.Key("slow", lambda effort: number(2.0, effort), "one that does not", at_most=1.5),
    ]
    monkeypatch.setattr(report, "_TABLE", table)
    return seen


def test_json_is_flat_and_alone_on_standard_output(two_keys, capsys):
    report.run_bench(as_json=True)
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert printed.out.count("\n") == 1
    assert found["fast"] == {"median": 1.0, "spread": 0.25, "ms": 0.33333, "pairs": 4}
    assert (found["wrssl"], found["torch"]) == (wrssl.__version__, torch.__version__)
    assert found["threads"] == 1
    for value in found.values():
        inner = value.values() if isinstance(value, dict) else [value]
        assert all(isinstance(v, (int, float, str)) for v in inner)
    assert platform.node() not in printed.out or not platform.node()
    assert "fast … 1.000, spread 0.250" in printed.err


def test_the_table_says_what_holds(two_keys, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    report.run_bench()
    lines = capsys.readouterr().out.splitlines()
    for name, holds in (("fast", "yes"), ("slow", "NO")):
        (row,) = (line for line in lines if name in line)
        assert holds in row
        assert "≤ 1.5" in row


def test_only_chooses_and_one_thread_is_used(two_keys, capsys):
    torch.set_num_threads(2)
    try:
        report.run_bench(["slow"], as_json=True)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert two_keys == [1]
    found = json.loads(capsys.readouterr().out)
    assert "slow" in found
    assert "fast" not in found


def test_an_unknown_key_is_an_error_that_lists_the_others(two_keys):
    with pytest.raises(OptionError, match="'fats'; choose from fast, slow"):
        report.run_bench(["fats"])


def test_the_processor(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: Abacus 3000 @ 2 Hz\n")
    assert report.processor(file) == "Abacus 3000 @ 2 Hz"
    assert isinstance(report.processor(tmp_path / "nowhere"), str)


def test_what_cannot_be_measured_here_is_said(two_keys, monkeypatch, capsys):
    missing = report.Key("far", lambda effort: Figure(1.0, 0.0), "", possible=lambda: False, needs="a telescope")
    monkeypatch.setattr(report, "_TABLE", [*report._TABLE, missing])
    report.run_bench(as_json=True)
    printed = capsys.readouterr()
    assert "far is left out, it needs a telescope\n" in printed.err
    assert "far" not in json.loads(printed.out)
    report.run_bench(["fast"], as_json=True)
    assert "far" not in capsys.readouterr().err
    with pytest.raises(OptionError, match="far cannot be measured here; it needs a telescope"):
        report.run_bench(["far"])
