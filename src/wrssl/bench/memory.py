"""The resident memory of one run, measured from inside: ``python -m wrssl.bench.memory SIZE STEPS BATCH``.

A process of its own for each run, because freed memory stays with a process, and the next run would reuse it unseen.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from wrssl.bench.trainers import stepper, table_rows, table_trainer
from wrssl.training.threads import threads

STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


def can_be_measured() -> bool:
    """Whether the system tells the peak of a process and lets it start anew (Linux does)."""
    return STATUS.exists() and os.access(RESET, os.W_OK)


def resident() -> tuple[int, int]:
    """Resident memory and its peak (``VmRSS`` and ``VmHWM``) in bytes, read at once."""
    fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    now, peak = (1024 * int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM"))
    return now, peak


def watch(size: int, steps: int, batch_size: int) -> dict[str, int]:
    """Bytes of the pool, at the start of the steps, at their peak and after them."""
    rows = table_rows(size)
    step = stepper(table_trainer(rows, batch_size))
    RESET.write_text("5")  # the peak is what is resident now
    start, _ = resident()
    for _ in range(steps):
        step()
    end, peak = resident()
    return {"data": rows.nbytes, "start": start, "peak": peak, "end": end}


def main(arguments: Sequence[str]) -> None:
    """Print what was seen."""
    with threads(1):
        print(json.dumps(watch(*map(int, arguments))))


if __name__ == "__main__":
    main(sys.argv[1:])
