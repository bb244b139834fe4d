"""Trainings that two processes share: the same losses, weights and parameters as in one, for every kind of method."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lightning_fabric")
PROGRAM = Path(__file__).with_name("pairs_program.py")
PAIRS = [
    "pl wr-cluster head", "mt wr head", "pi wr-instance head", "vat wr-cluster head", "pi l2rw head", "pi mwn head",
    "pi ds3l head", "pi uasd head", "mixmatch wr-cluster head", "fixmatch wr-cluster network", "supervised none head",
]  # fmt: skip


@pytest.fixture(scope="module")
def report():
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(next(line for line in done.stderr.splitlines() if line.startswith("{")))


@pytest.mark.parametrize("pair", PAIRS)
def test_two_processes_equal_one(pair, report):
    found = report[pair]
    for name, numbers in found.items():
        assert numbers["same"], f"{name}: the processes differ"
        # Adam turns the rounding of a gradient near zero into a step of its own.
        assert numbers["apart"] < 1e-3, name
    assert found["losses"]["apart"] < 1e-4
    assert found["losses"]["moved"] > 0.01, "nothing was learned, so nothing was compared"


def test_all_pairs_are_compared(report):
    assert sorted(report) == sorted(PAIRS)
