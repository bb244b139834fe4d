"""How the weights of the pool are spread, at the start and at each evaluation: what the report draws over time.

``Weighting.weights`` only reads, so looking at it between two steps changes nothing: tables are indexed (``l2rw``,
``mwn``, ``ds3l``, ``uasd`` and the paper's two say what they knew at a member's last visit, 1 before the first), the
prior is a curve over stored scores, and ``wr`` forgets which batch it was asked about last, which it then works out
again.
"""

from __future__ import annotations

from typing import Any

import torch

from wrssl.api import Weighting
from wrssl.training.callbacks import Callback

BINS = 20
MEMBERS = 100_000  # of the pool that are looked at; the shares of more would differ in the third digit
CHUNK = 10_000
NEAR = 1e-5  # so close to the end of a bin is at the end


class WeightHistory(Callback):
    """Counts the weights in ``BINS`` equal bins over [0, 1]; the last one holds 1 as well.

    Args:
        weighting: of a method that uses the pool, set up already.
        size: number of pool members.
        rows: where the looks go; default a new list.

    Attributes:
        rows: one per look: ``step`` (0 before the first), ``mean``, ``members`` (how many were looked at), ``counts``.
    """

    def __init__(self, weighting: Weighting, size: int, rows: list[dict[str, Any]] | None = None) -> None:
        self.weighting, self.size = weighting, size
        self.rows: list[dict[str, Any]] = [] if rows is None else rows

    def on_start(self, start: int, steps: int) -> None:
        """Look at the weights that training begins with; a resumed run forgets what lies ahead of it."""
        self.rows[:] = [row for row in self.rows if row["step"] <= start]
        if start == 0 and not self.rows:
            self._look(0)

    def on_evaluate(self, row: dict[str, Any]) -> None:
        """Look at the weights of now."""
        self._look(int(row["step"]))

    def _look(self, step: int) -> None:
        members = min(self.size, MEMBERS)
        counts, total = torch.zeros(BINS, dtype=torch.long), 0.0
        for start in range(0, members, CHUNK):
            # Evenly spread over the pool, the same members each time: place k belongs to member ⌊k M / members⌋.
            index = torch.arange(start, min(start + CHUNK, members)) * self.size // members
            w = self.weighting.weights(index).detach().cpu().double()
            # Weights are float32: 0.95 is a little less than that, and belongs to the bin that begins there.
            counts += torch.bincount((w * BINS + NEAR).long().clamp(0, BINS - 1), minlength=BINS)
            total += float(w.sum())
        self.rows.append({"step": step, "mean": total / members, "members": members, "counts": counts.tolist()})
