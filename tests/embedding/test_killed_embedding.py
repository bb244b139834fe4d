"""A program that is killed while it embeds: the cache is whole, and the next one goes on from there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

PROGRAM = """
import sys, time
import numpy as np
from wrssl.embedding import Embedder, embed_items, pipeline
from pathlib import Path

class Slow(Embedder):
    kind, dim, fingerprint, batch = "text", 3, "slow-1", 2
    def rows(self, items):
        time.sleep(0.002)
        return np.array([[len(i), int(i) % 7, int(i) % 11] for i in items], np.float32)

pipeline.STORE_EVERY = 0.02
print("ready", flush=True)
found = embed_items([str(i) for i in range(600)], Slow(), cache=Path(sys.argv[1]))
print(found.computed)
np.save(sys.argv[2], np.asarray(found.rows[0]))
"""


@pytest.mark.parametrize("seed", range(5))
def test_killed_and_started_again_until_it_ends(tmp_path, seed):
    moments, computed = random.Random(seed), None
    for attempt in range(40):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "cache"), str(tmp_path / "rows.npy")],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        if attempt < 4:
            time.sleep(moments.uniform(0.0, 0.4))
            process.send_signal(signal.SIGKILL)
        rest = process.communicate(timeout=60)[0]
        if process.returncode == 0:
            computed = int(rest)
            break
    numbers = range(600)
    expected = np.array([[len(str(i)), i % 7, i % 11] for i in numbers], np.float16)
    assert np.array_equal(np.load(tmp_path / "rows.npy"), expected)
    assert computed < 600  # something of the killed ones was kept
    assert not [path for path in (tmp_path / "cache").rglob("*.rows") if path.stat().st_size == 0]
