"""Things that watch a run without changing it. All hooks are optional."""

from __future__ import annotations

from typing import Any

from wrssl.api import Weighting
from wrssl.training.step import Outcome


class Callback:
    """Override what you need; ``wrssl.fit(..., callbacks=[...])`` calls it."""

    def on_ready(self, weighting: Weighting) -> None:
        """Once weights are set up: ``weighting.weights(index)`` only reads and may be asked in every later hook."""

    def on_start(self, start: int, steps: int) -> None:
        """Before the first step; ``start`` is above 0 in a resumed run."""

    def on_step(self, step: int, outcome: Outcome) -> None:
        """After each step, and after its evaluation if there is one. Reading a tensor waits for the device."""

    def on_evaluate(self, row: dict[str, Any]) -> None:
        """After each evaluation, with the new row of the history."""

    def on_end(self) -> None:
        """After the last step, also when the run ends with an error."""
