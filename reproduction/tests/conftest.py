from __future__ import annotations

import hashlib

import pytest

from wrssl.registry import METHODS, SOLVERS
from wrssl_reproduction import published_code
from wrssl_reproduction.cell import Cell
from wrssl_reproduction.run import Outcome

TRACE = b"step,mean_weight_id,mean_weight_ood,val_accuracy\n0,1,1,\n10,0.9,0.2,0.8\n"


def number(cell: Cell) -> float:
    """A fraction that follows from the cell."""
    return int(hashlib.sha256(cell.config_hash.encode()).hexdigest()[:6], 16) / 16**6


class FakeRun:
    """Stands in for training; remembers what it was asked to run and can be told to fail or to stop."""

    def __init__(self) -> None:
        self.seen: list[Cell] = []
        self.fails: dict[str, Exception] = {}
        self.stops_after: int | None = None

    def __call__(self, cell: Cell, data_dir: str | None) -> Outcome:
        if self.stops_after is not None and len(self.seen) >= self.stops_after:
            raise KeyboardInterrupt
        self.seen.append(cell)
        for part, error in self.fails.items():
            if part in str(cell):
                raise error
        measured = {
            "test_accuracy": number(cell), "val_accuracy": 0.5, "seconds_per_step": 0.01 + number(cell),
            "mean_seconds_per_step": 0.02 + number(cell), "mean_weight_id": 0.75, "mean_weight_ood": 0.25,
            "n_labels": 100, "n_validation": 1000, "seconds": 36.0,
        }  # fmt: skip
        files = {"weights.csv": TRACE} if "weights" in cell.keeps else {}
        return Outcome(measured, files)


@pytest.fixture
def fake_run() -> FakeRun:
    return FakeRun()


@pytest.fixture(autouse=True)
def published_names():
    """Solver and methods of the published code are registered, and gone after the test."""
    with METHODS.isolated(), SOLVERS.isolated():
        published_code.register()
        yield


@pytest.fixture
def no_files_needed(monkeypatch):
    """Every data set counts as there, since none is read."""
    monkeypatch.setattr("wrssl_reproduction.plan.missing_data", lambda cell, data_dir: None)
