"""A program that is killed while it embeds: the cache is whole, and the next one goes on from there.

What is stored every few seconds, so that little is lost, must not become thousands of open files.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from wrssl.embedding import Embedder, embed_items, pipeline
from wrssl.embedding.cache import MOST

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


class Watching(Embedder):
    """Remembers how many files of rows there are when it is asked."""

    kind, dim, fingerprint, batch = "text", 2, "watching-1", 2

    def __init__(self, folder):
        self.folder, self.seen = folder, []

    def rows(self, items):
        self.seen.append(len(list(self.folder.rglob("*.rows"))))
        return np.array([[int(i), int(i) % 7] for i in items], np.float32)


def test_a_long_run_keeps_few_files(tmp_path, monkeypatch):
    """Every one of them is open, and a process may have about a thousand."""
    monkeypatch.setattr(pipeline, "STORE_ROWS", 2)
    embedder = Watching(tmp_path)
    found = embed_items([str(i) for i in range(600)], embedder, cache=tmp_path)
    assert MOST // 2 < max(embedder.seen) <= MOST + 2
    assert len(list(tmp_path.rglob("*.rows"))) < 10
    expected = np.array([[i, i % 7] for i in range(600)], np.float16)
    assert np.array_equal(found.rows[0], expected)
    again = embed_items([str(i) for i in range(600)], embedder, cache=tmp_path)
    assert again.computed == 0
    assert np.array_equal(again.rows[0], expected)
