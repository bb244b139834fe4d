"""Very many steps in one process: memory and open files must not grow.

    .venv/bin/python benchmarks/programs/soak.py --out docs/results/trust/soak.csv

A small network on two moons, small batches, the default weighting without its fallback, in a run directory, so that
states are stored as in any run. Every ``--every`` steps a row is written: step, resident memory, open file handles,
seconds. At the end the growth since the first tenth is printed; more than 2 % of memory, or one handle, is a failure.
Memory is the largest of the samples of the first tenth against the largest of those after it, so that a sample taken
while a state is being written does not look like growth.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

from campaign_page import growth, rows

import wrssl
from wrssl.training import Callback

PAGE = os.sysconf("SC_PAGE_SIZE")
ALLOWED = 0.02


def resident() -> int:
    """Bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def handles() -> int:
    """Open file descriptors, without the one that counts them."""
    return len(os.listdir("/proc/self/fd")) - 1


class Sampler(Callback):
    """Writes a row every so many steps."""

    def __init__(self, every: int, file: TextIO) -> None:
        self.every, self.file, self.start, self.steps = every, file, time.monotonic(), 0
        self.writer = csv.writer(file, lineterminator="\n")
        self.writer.writerow(("step", "resident_bytes", "handles", "seconds"))

    def on_step(self, *_: Any) -> None:
        self.steps += 1
        if self.steps % self.every == 0:
            seconds = round(time.monotonic() - self.start, 2)
            self.writer.writerow((self.steps, resident(), handles(), seconds))
            self.file.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a CSV file")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--every", type=int, default=2_000)
    parser.add_argument("--weights", default="wr")
    parser.add_argument("--method", default="pl")
    args = parser.parse_args()
    scenario = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w", newline="") as file, tempfile.TemporaryDirectory() as folder:
        sampler = Sampler(args.every, file)
        wrssl.fit(
            scenario, model="mlp", method=args.method, weights=args.weights, fallback=False, steps=args.steps,
            batch_size=16, progress=False, callbacks=[sampler], out=Path(folder) / "run",
        )  # fmt: skip
        seconds = time.monotonic() - sampler.start
    found = rows(args.out)
    before, after, more = growth(found)
    rise = after / before - 1
    print(f"{args.steps} steps in {seconds:.0f} s, {1000 * seconds / args.steps:.2f} ms each")
    print(f"memory: {before / 1e6:.1f} MB in the first tenth, then at most {after / 1e6:.1f} MB: {100 * rise:+.2f} %")
    print(f"open file handles: {found[-1]['handles']}, {more:+d} since the first tenth")
    sys.exit(rise > ALLOWED or more > 0)


if __name__ == "__main__":
    main()
