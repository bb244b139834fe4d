"""The page that explains how to add a method holds a complete one, which is short and runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "adding-a-method.md"
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_a_complete_method_takes_less_than_sixty_lines():
    assert len(CODE.splitlines()) < 60


def test_the_example_runs_and_learns(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-c", CODE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    accuracy, *weights = map(float, done.stdout.split())
    assert accuracy > 0.7
    assert all(0 <= w <= 1 for w in weights)
