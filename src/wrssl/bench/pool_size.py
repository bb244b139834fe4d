"""A pool of ten million over one of ten thousand: a step must not notice the difference."""

from __future__ import annotations

import json
import statistics
from functools import cache

from wrssl.bench.effort import Effort
from wrssl.bench.processes import output_of
from wrssl.bench.timing import Figure, interleave, quartile_range, summary
from wrssl.bench.trainers import stepper, table_rows, table_trainer

# Growth below this is the allocator's rounding; a step that held a single byte per member would grow ten times as far.
FLOOR = 2**20
Runs = tuple[list[dict[str, int]], list[dict[str, int]]]


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
    """What ``memory.py`` says about the large and the small pool, in turns, a new process each."""
    runs: Runs = ([], [])
    for _ in range(effort.times(3)):
        for size, kept in zip((effort.large, effort.small), runs, strict=True):
            numbers = (str(number) for number in (size, effort.steps, effort.batch))
            kept.append(json.loads(output_of("-m", "wrssl.bench.memory", *numbers)))
    return runs
