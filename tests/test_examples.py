"""Every example runs by itself; the own loop stays short and is worth its lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))
OWN_LOOP = next(path for path in EXAMPLES if path.name == "own_loop.py")


@cache
def output_of(path: Path) -> str:
    """What the example prints; it runs once, whoever asks."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_that_the_guides_promise_are_there():
    names = {path.stem for path in EXAMPLES}
    assert {"own_loop", "own_embedding", "module_embedder", "estimator_pipeline"} <= names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_something(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert output_of(path).strip()
    assert not list(tmp_path.iterdir()), "an example leaves files behind"


def test_the_own_loop_adds_fewer_than_20_lines():
    lines = OWN_LOOP.read_text(encoding="utf-8").splitlines()
    added = [line for line in lines if re.search(r"# \+(  # fmt: skip)?$", line)]
    imports = [line for line in lines if line.startswith("from wrssl.")]
    assert len(added) >= 5
    assert len(added) + len(imports) < 20
    for part in ("convert_batchnorm(", "fit_prior(", "sample_weights(", "head_hypergradient("):
        assert any(part in line for line in added), f"{part}…) is used without a mark"


def test_the_robust_loop_is_better_than_the_plain_one():
    plain, robust = map(float, re.findall(r"([\d.]+) %", output_of(OWN_LOOP)))
    assert robust > plain
