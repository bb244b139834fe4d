"""What the steps since the last row of history reported."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.training.step import Outcome

ALWAYS = ("loss", "labeled", "unlabeled", "mean_weight")
SOMETIMES = ("gate_open", "largest_eigenvalue", "stationarity")
SKIPPED, BEFORE = "skipped", "skipped_before"  # per step; how many in a row there were when this began


class Tally:
    """Collects outcomes as tensors, so that nothing waits for the device before a mean is asked for."""

    def __init__(self) -> None:
        self._values: dict[str, list[Tensor]] = {name: [] for name in (*ALWAYS, *SOMETIMES, SKIPPED, BEFORE)}

    def add(self, outcome: Outcome) -> None:
        """One step more."""
        for name in ALWAYS:
            self._values[name].append(getattr(outcome, name))
        estimate = outcome.estimate
        if outcome.skipped is not None:
            self._values[SKIPPED].append(outcome.skipped)
        found = (
            outcome.open,
            *((None, None) if estimate is None else (estimate.largest_eigenvalue, estimate.stationarity)),
        )
        for name, value in zip(SOMETIMES, found, strict=True):
            if value is not None:
                self._values[name].append(value)

    def mean(self, name: str) -> float | None:
        """Over the steps that reported a finite value; None where none did."""
        if not self._values[name]:
            return None
        values = torch.stack(self._values[name]).double()
        known = values[values.isfinite()]
        return float(known.mean()) if len(known) else None

    def skipped(self) -> tuple[int, int]:
        """How many steps were skipped, and how many at most in a row, those right before among them."""
        return int(sum(_numbers(self._values[SKIPPED]))), self._in_a_row()[1]

    def following(self) -> Tally:
        """An empty one for the next row, which knows how many steps in a row are skipped already."""
        after = Tally()
        after._values[BEFORE] = [torch.tensor(self._in_a_row()[0], dtype=torch.float64)]
        return after

    def _in_a_row(self) -> tuple[int, int]:
        """Up to now, and at most."""
        row = longest = int(sum(_numbers(self._values[BEFORE])))
        for skipped in _numbers(self._values[SKIPPED]):
            row = row + 1 if skipped else 0
            longest = max(longest, row)
        return row, longest

    def to_json(self) -> dict[str, list[float]]:
        """For a run that stops between two rows."""
        return {name: [float(value) for value in values] for name, values in self._values.items()}

    def load(self, stored: dict[str, list[float]]) -> None:
        """Inverse of ``to_json``; what is not finite was stored as null."""
        for name, values in stored.items():
            self._values[name] = [torch.tensor(float("nan") if v is None else v, dtype=torch.float64) for v in values]


def _numbers(values: list[Tensor]) -> list[float]:
    numbers: list[float] = torch.stack(values).tolist() if values else []
    return numbers
