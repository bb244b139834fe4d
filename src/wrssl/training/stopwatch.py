"""How long steps take, in bounded memory."""

from __future__ import annotations

import math
import statistics
from collections import deque

RECENT = 1000  # steps behind the median


class Stopwatch:
    """Adds up the seconds of steps and knows the median of the last ones."""

    def __init__(self) -> None:
        self.total = 0.0
        self._recent: deque[float] = deque(maxlen=RECENT)

    def add(self, seconds: float) -> None:
        """One step more."""
        self.total += seconds
        self._recent.append(seconds)

    def median(self) -> float:
        """Of the last steps, so that one slow step does not count; NaN before the first."""
        return statistics.median(self._recent) if self._recent else math.nan

    def to_json(self) -> dict[str, float]:
        """For a run that goes on later."""
        return {"total": self.total, "median": self.median()}

    def load(self, stored: dict[str, float | None]) -> None:
        """Inverse of ``to_json``: the stored median stands for all steps until new ones outvote it."""
        self.total = float(stored["total"] or 0.0)
        self._recent.clear()
        if stored["median"] is not None:
            self._recent.append(float(stored["median"]))
