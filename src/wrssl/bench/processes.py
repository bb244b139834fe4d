"""Other Python processes: what a start costs, and measurements that need a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial

from wrssl.api import WRSSLError
from wrssl.bench.effort import Effort
from wrssl.bench.timing import Figure, interleave, summary

OURS = "import wrssl; wrssl.WeightedBatchNorm2d"  # names are loaded when they are first used: so use one
TORCH = "import torch"


def output_of(*arguments: str) -> str:
    """What this Python prints when it is called with these arguments, on one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise WRSSLError(f"A measuring process ended with code {done.returncode} and said: {last}")
    return done.stdout


def import_over_torch(effort: Effort) -> Figure:
    """Importing the package and one of its layers over importing torch alone; the first pair fills the disk cache."""
    ours, torch = partial(output_of, "-c", OURS), partial(output_of, "-c", TORCH)
    return interleave(ours, torch, effort.times(7), warmup=1).figure()


def help_seconds(effort: Effort) -> Figure:
    """Seconds of ``python -m wrssl --help``; the one figure that is no ratio, because a person waits for it."""
    spent = []
    for _ in range(effort.times(5)):
        start = time.perf_counter()
        output_of("-m", "wrssl", "--help")
        spent.append(time.perf_counter() - start)
    return summary(spent)
