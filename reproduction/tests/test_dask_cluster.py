"""Cells on a cluster whose worker dies: every row is there once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wrssl.errors import OptionError
from wrssl_reproduction.rows import read_rows
from wrssl_reproduction.workers import cluster

PROGRAM = Path(__file__).with_name("cluster_program.py")


def test_a_killed_worker_loses_nothing_and_doubles_nothing(tmp_path):
    pytest.importorskip("distributed")
    done = subprocess.run([sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert (tmp_path / "killed").exists()
    assert report["runs"] == report["new"] == 45
    assert report["failed"] == 0
    assert report["pids"] >= 2, "one worker did everything"
    lines = (tmp_path / "fig4a" / "results.csv").read_text().splitlines()
    hashes = [row["config_hash"] for row in read_rows(tmp_path / "fig4a" / "results.csv")]
    assert len(lines) == 46
    assert len(hashes) == len(set(hashes)) == 45


@pytest.mark.parametrize(
    ("backend", "address", "words"),
    [
        (None, "tcp://localhost:1", "add --backend dask"),
        ("ray", None, "There is no backend 'ray'"),
        ("dask", None, "Say where the scheduler"),
    ],
)
def test_refused_in_one_sentence(backend, address, words):
    with pytest.raises(OptionError, match=words), cluster(backend, address):
        pass


def test_a_scheduler_that_does_not_answer(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("wrssl_reproduction.workers.ANSWER", "300ms")
    with (
        pytest.raises(OptionError, match=r"No Dask scheduler answers at tcp://127.0.0.1:9; start one"),
        cluster("dask", "tcp://127.0.0.1:9"),
    ):
        pass
