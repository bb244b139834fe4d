"""Memory and time against the size of the pool, 10^4 to 10^7 members: the measurements behind docs/scale.md.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/scale.py --out docs/results/scale/results.csv

Rows of eight bytes and a small network, so that what is measured is the pool and not its content. Every row of the
results is a process of its own; one that is there already is not measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

SIZES = (10**4, 10**5, 10**6, 10**7)
WEIGHTS = ("none", "wr-cluster", "wr-instance", "wr")
STEPS = 100


def measure(size: int, weights: str) -> dict[str, float]:
    """Seconds of the look at the pool, milliseconds of a step, what is held beyond the data, growth during the steps.

    A trainer of a handful of members comes first, so that what is imported or compiled once does not count.
    """
    import torch

    from wrssl.bench.memory import RESET, resident
    from wrssl.bench.trainers import table_rows, table_trainer

    torch.set_num_threads(1)
    warm = table_trainer(table_rows(2000), 100, weights=weights)
    for step in range(10):
        warm.step(step)
    rows = table_rows(size)
    before, _ = resident()
    begin = time.perf_counter()
    trainer = table_trainer(rows, 100, weights=weights)
    ready = time.perf_counter() - begin
    for step in range(10):
        trainer.step(step)
    RESET.write_text("5")
    start, _ = resident()
    times = []
    for step in range(10, 10 + STEPS):
        begin = time.perf_counter()
        trainer.step(step)
        times.append(time.perf_counter() - begin)
    end, peak = resident()
    return {
        "setup_seconds": ready,
        "ms_per_step": 1000 * statistics.median(times),
        "held_mib": (end - before) / 2**20,
        "step_growth_mib": (peak - start) / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=2)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(int(options.one[0]), options.one[1])))
        return
    known = set()
    if options.out.exists():
        with options.out.open(newline="") as file:
            known = {(row["pool"], row["weights"]) for row in csv.DictReader(file)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for weights in WEIGHTS:
        for size in SIZES:
            if (str(size), weights) in known:
                continue
            command = [sys.executable, __file__, "--one", str(size), weights]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            row = {"pool": size, "weights": weights, **{k: f"{v:.6g}" for k, v in found.items()}}
            row |= {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
            fresh = not options.out.exists()
            with options.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(row))
                if fresh:
                    writer.writeheader()
                writer.writerow(row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
