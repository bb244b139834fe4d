"""The summary of pip-audit: clean is what was looked at, and nothing else."""

from __future__ import annotations

import subprocess

import pytest

SKIPPED = {"name": "a", "skip_reason": "Dependency not found on PyPI"}
CLEAN = {"name": "b", "version": "1.0", "vulns": []}
BAD = {"name": "c", "version": "2.0", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}, {"id": "CVE-2"}]}


@pytest.fixture(scope="module")
def audit(program):
    return program("tools/audit.py")


@pytest.mark.parametrize(
    ("packages", "begins", "counts", "code"),
    [
        ([], "not audited", "0 packages audited, 0 skipped", 0),
        ([SKIPPED] * 3, "not audited", "0 packages audited, 3 skipped", 0),
        ([CLEAN, SKIPPED], "no known vulnerability", "1 packages audited, 1 skipped", 0),
        ([CLEAN, BAD, SKIPPED], "2 known vulnerabilities", "2 packages audited, 1 skipped", 1),
    ],
)
def test_summary(audit, packages, begins, counts, code):
    text, got = audit.summary({"dependencies": packages})
    assert text.startswith(begins)
    assert counts in text
    assert got == code


def test_what_is_known_is_named(audit):
    text, _ = audit.summary({"dependencies": [BAD]})
    assert text.splitlines()[1:] == ["c 2.0: CVE-1 (fixed in 2.1)", "c 2.0: CVE-2 (fixed in no version yet)"]


@pytest.mark.parametrize(("out", "err", "words"), [("", "x\nno network\n", "no network"), ("{", "", "no answer")])
def test_without_a_report_nothing_was_audited(audit, monkeypatch, capsys, out, err, words):
    done = subprocess.CompletedProcess([], 1, out, err)
    monkeypatch.setattr(audit.subprocess, "run", lambda *arguments, **options: done)
    assert audit.main() == 0
    assert capsys.readouterr().out == f"not audited: 0 packages audited (pip-audit: {words})\n"
