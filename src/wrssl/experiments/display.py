"""Progress for a person who waits: cells done, time left, last result."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from wrssl.experiments.cell import Cell
from wrssl.experiments.cost import in_words, share_seconds
from wrssl.experiments.parallel import Attempt


class Display:
    """A bar on a terminal, one line per cell elsewhere; all on standard error.

    Time left follows from the predicted cost of the cells that are still to do, at the speed of those that are done.

    Args:
        cells: all that are to be run.
        jobs: how many are run beside each other, as in ``reproduce``.
        terminal: None looks whether standard error is one.
    """

    def __init__(self, cells: Sequence[Cell], jobs: int, terminal: bool | None = None) -> None:
        self.number, self.jobs = len(cells), jobs
        self.total = sum(share_seconds(cell, jobs) for cell in cells)
        self.done, self.cost, self.begin = 0, 0.0, time.monotonic()
        self._bar: Any = None
        if sys.stderr.isatty() if terminal is None else terminal:
            self._bar = _bar()
            self._task = self._bar.add_task("cells", total=self.total, cells=f"0/{self.number}", left="", last="")

    def __enter__(self) -> Display:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, attempt: Attempt) -> None:
        """One more cell is done."""
        self.done += 1
        self.cost += share_seconds(attempt.cell, self.jobs)
        cells, last = f"{self.done}/{self.number}", f"{attempt.cell}: {result_in_words(attempt)}"
        left = f"{in_words(self.seconds_left())} left"
        if self._bar is None:
            print(f"{cells}  {left}  {last}", file=sys.stderr, flush=True)
        else:
            self._bar.update(self._task, completed=self.cost, cells=cells, left=left, last=last)

    def seconds_left(self) -> float:
        """At the speed so far."""
        left = max(0.0, self.total - self.cost)  # a sum in another order can be larger by a rounding error
        return (time.monotonic() - self.begin) * left / self.cost if self.cost else left


def result_in_words(attempt: Attempt) -> str:
    """The accuracy, or what went wrong."""
    if attempt.outcome is None:
        return f"failed, {attempt.error}"
    accuracy = attempt.outcome.measured.get("test_accuracy")
    return "no accuracy" if accuracy is None else f"{100 * accuracy:.2f} %"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    fields = (TextColumn(f"{{task.fields[{name}]}}", markup=False) for name in ("cells", "left", "last"))
    return Progress(BarColumn(), TimeElapsedColumn(), *fields, console=Console(stderr=True), transient=True)
