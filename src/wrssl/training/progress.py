"""A progress bar with live loss, accuracy and mean weight; silent where nobody watches."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from wrssl.progress import Tick, bar
from wrssl.training.callbacks import Callback
from wrssl.training.step import Outcome


class ProgressBar(Callback):
    """A rich progress bar on standard error."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._shown = ExitStack()
        self._tick: Tick | None = None
        self._accuracy = ""

    def on_start(self, start: int, steps: int) -> None:
        """Draw the bar."""
        self._tick = self._shown.enter_context(bar(self.title, steps, done=start, show=True))

    def on_step(self, step: int, outcome: Outcome) -> None:
        """Show the loss now and then."""
        if self._tick is not None:
            self._tick(
                1,
                lambda: f"loss {float(outcome.loss):.3f}  mean weight {float(outcome.mean_weight):.2f}{self._accuracy}",
            )

    def on_evaluate(self, row: dict[str, Any]) -> None:
        """Remember the accuracy."""
        if row["val_accuracy"] is not None:
            self._accuracy = f"  validation {100 * row['val_accuracy']:.1f} %"

    def on_end(self) -> None:
        """Remove the bar."""
        self._shown.close()


def someone_watches() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()
