"""A progress bar with live loss, accuracy and mean weight; silent where nobody watches."""

from __future__ import annotations

import sys
import time
from typing import Any

from wrssl.data.progress import counting_bar
from wrssl.training.callbacks import Callback
from wrssl.training.step import Outcome

REFRESH = 0.25  # seconds between two looks at the loss, each of which waits for the device


class ProgressBar(Callback):
    """A rich progress bar on standard error."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._bar: Any = None
        self._task: Any = None
        self._shown = 0.0
        self._accuracy = ""

    def on_start(self, start: int, steps: int) -> None:
        """Draw the bar."""
        from rich.progress import TextColumn

        self._bar = counting_bar(TextColumn("{task.fields[info]}"))
        self._task = self._bar.add_task(self.title, total=steps, completed=start, info="")
        self._bar.start()

    def on_step(self, step: int, outcome: Outcome) -> None:
        """Show the loss now and then."""
        now = time.monotonic()
        if now - self._shown > REFRESH:
            self._shown = now
            info = f"loss {float(outcome.loss):.3f}  mean weight {float(outcome.mean_weight):.2f}{self._accuracy}"
            self._bar.update(self._task, completed=step + 1, info=info)

    def on_evaluate(self, row: dict[str, Any]) -> None:
        """Remember the accuracy."""
        if row["val_accuracy"] is not None:
            self._accuracy = f"  validation {100 * row['val_accuracy']:.1f} %"

    def on_end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


def someone_watches() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()
