"""benchmarks/programs/performance.py in small: every sweep can be measured, rows are kept, pictures are drawn."""

from __future__ import annotations

import importlib.util
import sys
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from wrssl_bench.steps import images

FILE = Path(__file__).resolve().parents[1] / "programs" / "performance.py"


@pytest.fixture(scope="module")
def performance():
    spec = importlib.util.spec_from_file_location("performance", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["performance"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["performance"]


@pytest.mark.parametrize(("name", "value"), [("pool", 1000), ("classes", 2), ("L", 1)])
def test_a_point(performance, name, value, monkeypatch):
    monkeypatch.setattr(performance, "WARMUP", 1)
    monkeypatch.setattr(performance, "images", partial(images, 200))
    found = performance.measure(performance.SWEEPS[name], value, blocks=1)
    assert all(number >= 0 for number in found.values())
    assert found["ratio"] > 0


def test_rows_are_appended_and_not_measured_again(performance, monkeypatch, tmp_path, capsys):
    asked = []

    def measure(sweep, value, blocks):
        asked.append(value)
        return {"ratio": 1.1, "spread": 0.1, "ms": 2.0, "base_ms": 1.8, "pairs": blocks, "length": 5}

    monkeypatch.setattr(performance, "measure", measure)
    arguments = ["--sweeps", "J", "--out", str(tmp_path), "--images", str(tmp_path / "images"), "--at-most"]
    performance.main([*arguments, "3"])
    assert asked == [0, 1, 3]
    performance.main([*arguments, "5"])
    assert asked == [0, 1, 3, 5]
    rows = pd.read_csv(tmp_path / "results.csv")
    assert list(rows["value"]) == asked
    assert set(rows["sweep"]) == {"J"}
    assert (tmp_path / "images" / "J.png").read_bytes()[:4] == b"\x89PNG"
    assert "J 5: 2.0 ms" in capsys.readouterr().out
