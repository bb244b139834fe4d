"""What the steps since the last row of history reported."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.training.step import Outcome

ALWAYS = ("loss", "labeled", "unlabeled", "mean_weight")
SOMETIMES = ("gate_open", "largest_eigenvalue", "stationarity")


class Tally:
    """Collects outcomes as tensors, so that nothing waits for the device before a mean is asked for."""

    def __init__(self) -> None:
        self._values: dict[str, list[Tensor]] = {name: [] for name in (*ALWAYS, *SOMETIMES)}

    def add(self, outcome: Outcome) -> None:
        """One step more."""
        for name in ALWAYS:
            self._values[name].append(getattr(outcome, name))
        estimate = outcome.estimate
        found = (
            outcome.open,
            *((None, None) if estimate is None else (estimate.largest_eigenvalue, estimate.stationarity)),
        )
        for name, value in zip(SOMETIMES, found, strict=True):
            if value is not None:
                self._values[name].append(value)

    def mean(self, name: str) -> float | None:
        """Over the steps that reported it; None where none did."""
        values = self._values[name]
        return float(torch.stack(values).double().mean()) if values else None

    def to_json(self) -> dict[str, list[float]]:
        """For a run that stops between two rows."""
        return {name: [float(value) for value in values] for name, values in self._values.items()}

    def load(self, stored: dict[str, list[float]]) -> None:
        """Inverse of ``to_json``; what is not finite was stored as null."""
        for name, values in stored.items():
            self._values[name] = [torch.tensor(float("nan") if v is None else v, dtype=torch.float64) for v in values]
