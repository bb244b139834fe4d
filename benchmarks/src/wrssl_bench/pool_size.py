"""A pool of ten million over one of ten thousand: time and memory of a step must not grow with the pool.

Memory is that of a whole process, so each run has one of its own, ``python -m wrssl_bench.pool_size SIZE STEPS BATCH``:
freed memory stays with a process, and the next run would reuse it unseen.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from wrssl_bench.steps import stepper, table_rows, table_trainer
from wrssl_bench.timing import Effort, Figure, interleave, output_of, quartile_range, summary, torch_threads

# Growth below this is the allocator's rounding; a step that held a single byte per member would grow ten times as far.
FLOOR = 2**20
Runs = tuple[list[dict[str, int]], list[dict[str, int]]]
STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


def step_time(effort: Effort) -> Figure:
    """Seconds per step; both trainers live in this process and take steps in turns."""
    large, small = (stepper(table_trainer(table_rows(n), effort.batch)) for n in (effort.large, effort.small))
    return interleave(large, small, effort.times(12), effort.stretch, warmup=effort.warmup).figure()


def step_memory(effort: Effort) -> Figure:
    """Growth of the peak of resident memory during the steps; both sides count as at least ``FLOOR``."""
    a, b = ([max(run["peak"] - run["start"], FLOOR) for run in runs] for runs in _probes(effort))
    medians = {"mib": statistics.median(a) / 2**20, "base_mib": statistics.median(b) / 2**20}
    ratios = [one / other for one, other in zip(a, b, strict=True)]
    return Figure(medians["mib"] / medians["base_mib"], quartile_range(ratios), {**medians, "pairs": len(ratios)})


def bytes_per_member(effort: Effort) -> Figure:
    """Resident memory after the steps, less the data, less the same of the small pool; never below 0.

    That is everything that the process holds beyond the pool: weights and clusters, data order, what the allocator
    keeps after the set-up. Writing the verdicts after training is not part of it.
    """
    large, small = ([run["end"] - run["data"] for run in runs] for runs in _probes(effort))
    members = effort.large - effort.small
    return summary([max(a - b, 0) / members for a, b in zip(large, small, strict=True)])


@cache  # two figures, one measurement
def _probes(effort: Effort) -> Runs:
    """What ``watch`` says about the large and the small pool, in turns, a new process each."""
    runs: Runs = ([], [])
    for _ in range(effort.times(3)):
        for size, kept in zip((effort.large, effort.small), runs, strict=True):
            numbers = (str(number) for number in (size, effort.steps, effort.batch))
            kept.append(json.loads(output_of("-m", "wrssl_bench.pool_size", *numbers)))
    return runs


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
    with torch_threads(1):
        print(json.dumps(watch(*map(int, arguments))))


if __name__ == "__main__":
    main(sys.argv[1:])
