"""Memory, traffic and time against the size of the pool, 10^4 to 10^7 members: what docs/scale.md is checked against.

    OMP_NUM_THREADS=1 python benchmarks/programs/scale.py --out docs/results/scale/results.csv   # about seven minutes
    python benchmarks/programs/scale.py --out docs/results/scale/results.csv --page docs/scale.md  # tables, picture

Grey images of 8 × 8 bytes in a memory-mapped file and a small network, so that what is measured is the pool and not its
content; one row more has color images of 32 × 32. Every row of the results is a process of its own; one that is there
already is not measured again. ``--only`` measures these weightings, ``--sizes`` these sizes.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SIZES = (10**4, 10**5, 10**6, 10**7)
WEIGHTS = ("none", "wr-instance", "wr-cluster", "prior", "wr")
SMALL, LARGE = (1, 8, 8), (3, 32, 32)  # shapes of an image
STEPS, FILED = 100, 10**6  # of a run; the largest pool whose run is stored as well
BLOCK = 10**5  # images that are drawn; a larger pool repeats them
Shape = tuple[int, int, int]
STATUS = Path("/proc/self/status")


def anonymous() -> int:
    """Bytes of memory that no file backs: what a process needs, whatever is mapped."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("RssAnon"))
    return 1024 * int(line.split()[1])


class Peaks:
    """The largest amount of anonymous memory since ``clear``, looked at every few milliseconds."""

    def __init__(self) -> None:
        self.most = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.most = max(self.most, anonymous())
            time.sleep(0.01)

    def clear(self) -> int:
        """The peak so far, from now on a new one."""
        most, self.most = max(self.most, anonymous()), 0
        return most


@contextmanager
def image_file(size: int, shape: Shape) -> Iterator[Any]:
    """A pool of so many random images on the disk, memory-mapped."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool"
        block = np.random.default_rng(0).integers(0, 256, (min(size, BLOCK), *shape), dtype=np.uint8)
        with path.open("wb") as file:
            for start in range(0, size, BLOCK):
                block[: size - start].tofile(file)
        yield np.memmap(path, np.uint8, "r", shape=(size, *shape))


def measure(size: int, weights: str, shape: Shape) -> dict[str, float]:
    """Seconds before, during and after the steps, and what was held in memory; a small run comes first."""
    import numpy as np
    import torch

    import wrssl
    from wrssl.training import Callback

    torch.set_num_threads(1)
    x = np.random.default_rng(1).integers(0, 256, (60, *shape), dtype=np.uint8)
    y = np.arange(30) % 3
    peaks, marks = Peaks(), dict[str, float]()

    class Marks(Callback):
        def on_start(self, *_: Any) -> None:
            marks.update(ready=time.perf_counter(), setup_peak=peaks.clear())

        def on_end(self, *_: Any) -> None:
            marks.update(trained=time.perf_counter(), held=anonymous(), steps_peak=peaks.clear())

    def fit(scenario: Any, **more: Any) -> Any:
        watchers = [Marks(), *more.pop("watchers", ())]
        return wrssl.fit(scenario, "mlp", "pl", weights, fallback=False, progress=False, callbacks=watchers, **more)

    def scenario_of(pool: Any) -> Any:
        return wrssl.Scenario((x[:30], y), pool, (x[30:], y), overlap="allow")

    with image_file(size, shape) as pool:
        few = np.random.default_rng(2).integers(0, 256, (30_000, *shape), dtype=np.uint8)
        fit(scenario_of(few), steps=20)  # what is imported and fitted once does not count
        start, began = anonymous(), time.perf_counter()
        peaks.clear()
        scenario = scenario_of(pool)
        checked = time.perf_counter()
        result = fit(scenario, steps=STEPS)
        over = time.perf_counter()
        found = {
            "check_seconds": checked - began,
            "setup_seconds": marks["ready"] - checked,
            "ms_per_step": 1000 * result.metrics["seconds_per_step"],
            "judge_seconds": over - marks["trained"],
            "setup_peak_mib": (marks["setup_peak"] - start) / 2**20,
            "held_mib": (marks["held"] - start) / 2**20,
            "peak_mib": (max(peaks.clear(), marks["steps_peak"], marks["setup_peak"]) - start) / 2**20,
            "start_mib": start / 2**20,
        }
        del result
        if size <= FILED and shape == SMALL:
            found |= filed(scenario_of, pool, fit, found["judge_seconds"])
    return found


def filed(scenario_of: Any, pool: Any, fit: Any, judging: float) -> dict[str, float]:
    """How often a member is read, and how large the files of a run are.

    A pool that the checks read in one piece cannot be told from that piece, so there reads are not counted.
    """
    from torch import Tensor
    from torch.overrides import TorchFunctionMode

    from wrssl.training import Callback

    rows = [0]

    class Reads(TorchFunctionMode, Callback):
        """Counts the members that are taken out of the pool."""

        def __init__(self) -> None:
            super().__init__()
            self.address, self.at_start, self.at_end, self.trained = pool.ctypes.data, 0, 0, 0.0

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            if function is Tensor.__getitem__ and args[0].data_ptr() == self.address and args[0].shape == pool.shape:
                rows[0] += len(result)
            return result

        def on_start(self, *_: Any) -> None:
            self.at_start = rows[0]

        def on_end(self, *_: Any) -> None:
            self.at_end, self.trained = rows[0], time.perf_counter()

    with tempfile.TemporaryDirectory() as folder, Reads() as reads:
        run = Path(folder) / "run"
        scenario = scenario_of(pool)
        checked = rows[0]
        fit(scenario, steps=STEPS, out=run, watchers=[reads])
        over = time.perf_counter()
        newest = max((run / "state").glob("*-*.safetensors"))
        size = len(pool)
        files = {
            "store_seconds": max(0.0, over - reads.trained - judging),
            "state_bytes": newest.stat().st_size,
            "verdicts_bytes": (run / "verdicts.csv").stat().st_size,
        }
        if pool.nbytes <= 1 << 23:
            return files
        return files | {
            "check_reads": checked / size,
            "setup_reads": (reads.at_start - checked) / size,
            "step_reads": (reads.at_end - reads.at_start) / STEPS,
            "judge_reads": (rows[0] - reads.at_end) / size,
        }


NUMBERS = (
    "check_seconds", "setup_seconds", "ms_per_step", "judge_seconds", "setup_peak_mib", "held_mib", "peak_mib",
    "start_mib", "check_reads", "setup_reads", "step_reads", "judge_reads", "store_seconds", "state_bytes",
    "verdicts_bytes",
)  # fmt: skip


def record(path: Path, sizes: list[int], names: list[str]) -> None:
    """Measure what is not in the file yet."""
    known = set()
    if path.exists():
        with path.open(newline="") as file:
            known = {(row["pool"], row["weights"], row["image_bytes"]) for row in csv.DictReader(file)}
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = [(size, weights, SMALL) for weights in names for size in sizes]
    for size, weights, shape in [*wanted, *((10**5, name, LARGE) for name in names if name == "wr")]:
        if (str(size), weights, str(math.prod(shape))) in known:
            continue
        command = [sys.executable, __file__, "--one", str(size), weights, *map(str, shape)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        row: dict[str, Any] = {"pool": size, "weights": weights, "image_bytes": math.prod(shape)}
        row |= {name: f"{found[name]:.6g}" if name in found else "" for name in NUMBERS}
        row |= {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        fresh = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerow(row)
        print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=5, help="size, weighting and shape: measure in this process")
    parser.add_argument("--only", nargs="+", default=list(WEIGHTS), choices=WEIGHTS)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), type=int)
    parser.add_argument("--page", type=Path, help="put the tables of --out between the marks of this page, and draw")
    options = parser.parse_args()
    if options.one:
        size, weights, *shape = options.one
        channels, height, width = map(int, shape)
        print(json.dumps(measure(int(size), weights, (channels, height, width))))
    elif options.page:
        from scale_page import write_page

        write_page(options.out, options.page)
    else:
        record(options.out, options.sizes, options.only)


if __name__ == "__main__":
    main()
