"""A pool of ten million images that nobody has read yet: memory follows the batch, and the table of verdicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

MEASURE = """
import json, sys, threading, time
import numpy as np, torch
torch.set_num_threads(1)
import wrssl

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024

members, weights, steps = int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
pool = np.memmap(sys.argv[1], np.uint8, "r", shape=(members, 1, 8, 8))
own = np.random.default_rng(0)
x, y = own.integers(0, 256, (60, 1, 8, 8), dtype=np.uint8), np.arange(60) % 3


def run(members, steps):
    scenario = wrssl.Scenario((x[:30], y[:30]), pool[:members], (x[30:], y[30:]), overlap="allow")
    return wrssl.fit(scenario, "mlp", "pl", weights, steps=steps, fallback=False, progress=False)

run(1000, 1)  # loads what is loaded when it is first used
start, peak, over = anonymous(), [0.0], threading.Event()

def watch():
    while not over.wait(0.02):
        peak[0] = max(peak[0], anonymous())

watcher = threading.Thread(target=watch, daemon=True)
watcher.start()
began = time.perf_counter()
result = run(members, steps)
over.set()
watcher.join()
print(json.dumps({
    "start": start, "peak": peak[0], "rows": len(result.verdicts), "seconds": time.perf_counter() - began,
    "step": result.metrics["seconds_per_step"], "finite": bool(np.isfinite(result.weights).all()),
}))
"""


def measure(tmp_path, members, weights, steps=5):
    path = tmp_path / "pool"
    with path.open("wb") as file:
        file.truncate(members * 64)  # sparse: it takes no room on the disk
    command = [sys.executable, "-c", MEASURE, str(path), str(members), weights, str(steps)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=3600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells the memory")


@pytest.mark.campaign
@pytest.mark.parametrize("weights", ["none", "wr-cluster", "wr-instance", "prior", "wr"])
def test_ten_million_images_in_less_than_a_gigabyte(weights, tmp_path):
    found = measure(tmp_path, 10**7, weights)
    assert found["rows"] == 10**7
    assert found["finite"]
    assert found["peak"] < 1024, found


def test_half_a_million_images_take_little_more_than_their_verdicts(tmp_path):
    """The same for every day: 44 bytes per member and 7 MB are allowed; the pool as numbers would take 256 bytes."""
    found = measure(tmp_path, 500_000, "none", steps=3)
    assert found["rows"] == 500_000
    assert found["peak"] - found["start"] < 7 + 500_000 * 44 / 2**20, found
