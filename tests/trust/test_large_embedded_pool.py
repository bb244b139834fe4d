"""A pool of a million small pictures that an embedder makes rows of: pictures are fetched a batch at a time.

What is measured is memory, so the embedder is as cheap as one can be that gives rows of the usual width: a fixed random
projection of the picture at 8 × 8 pixels. A network would take hours and hold no more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

MEASURE = """
import json, sys, threading, time
import numpy as np, torch
torch.set_num_threads(1)
import wrssl

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024

class Tiny(wrssl.Embedder):
    kind, batch = "image", 64

    def __init__(self, dim):
        self.dim, self.fingerprint = dim, f"projection-{dim}-1"
        self.matrix = np.random.default_rng(0).standard_normal((192, dim), dtype=np.float32)

    def rows(self, items):
        small = np.stack(items).reshape(-1, 8, 4, 8, 4, 3).mean((2, 4), dtype=np.float32).reshape(-1, 192)
        return (small / 127.5 - 1) @ self.matrix

def run(pool, steps):
    own = np.random.default_rng(0)
    x, y = own.integers(0, 256, (60, 3, 32, 32), dtype=np.uint8), np.arange(60) % 3
    scenario = wrssl.Scenario(labeled=(x, y), unlabeled=pool)
    return wrssl.fit(scenario, weights=weights, embedder=Tiny(dim), steps=steps, fallback=False, progress=False)

weights, (members, dim, steps) = sys.argv[2], map(int, sys.argv[3:])
pool = np.memmap(sys.argv[1], np.uint8, "r", shape=(members, 3, 32, 32))
run(np.random.default_rng(1).integers(0, 256, (500, 3, 32, 32), dtype=np.uint8), 2)  # loads what is loaded at first use
start, peak, over = anonymous(), [0.0], threading.Event()

def watch():
    while not over.wait(0.02):
        peak[0] = max(peak[0], anonymous())

watcher = threading.Thread(target=watch, daemon=True)
watcher.start()
began = time.perf_counter()
result = run(pool, steps)
over.set()
watcher.join()
print(json.dumps({
    "start": start, "peak": peak[0], "rows": len(result.verdicts), "seconds": time.perf_counter() - began,
    "finite": bool(np.isfinite(result.weights).all()),
}))
"""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells the memory")


def measure(tmp_path, members, weights, dim, steps):
    path, own = tmp_path / "pool", np.random.default_rng(3)
    with path.open("wb") as file:  # all different, as equal pictures are embedded once
        for low in range(0, members, 10_000):
            file.write(own.integers(0, 256, (min(10_000, members - low), 3, 32, 32), dtype=np.uint8))
    command = [sys.executable, "-c", MEASURE, str(path), weights, *map(str, (members, dim, steps))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "WRSSL_CACHE": str(tmp_path / "cache")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=3600)
    finally:
        path.unlink()
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.campaign
def test_a_million_pictures_are_embedded_and_trained_on_in_less_than_a_gigabyte_and_a_half(tmp_path):
    found = measure(tmp_path, 10**6, "wr", dim=1280, steps=200)
    assert found["rows"] == 10**6
    assert found["finite"]
    assert found["peak"] < 1536, found


def test_memory_does_not_grow_by_the_pictures(tmp_path):
    """The same for every day: rows of 32 bytes where a picture has 3,072, and no weights, whose set-up has peaks."""
    few, many = (measure(tmp_path, members, "none", dim=16, steps=3) for members in (20_000, 40_000))
    assert (few["rows"], many["rows"]) == (20_000, 40_000)
    assert many["finite"]
    assert (many["peak"] - few["peak"]) * 2**20 / 20_000 < 1000, (few, many)
