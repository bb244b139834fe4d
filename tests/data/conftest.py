from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx_bytes(array: np.ndarray) -> bytes:
    header = struct.pack(">BBBB", 0, 0, CODES[array.dtype.str[1:]], array.ndim)
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return header + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.fixture
def to_idx() -> Callable[[np.ndarray], bytes]:
    return idx_bytes


@pytest.fixture(scope="session")
def small_mnist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny MNIST family in torchvision's layout: 600 + 100 digits, 520 fashion images, 530 letters.

    Training image 7 is a copy of test image 3, and training image 9 a copy of training image 8: both must be dropped.
    """
    root = tmp_path_factory.mktemp("family")
    rng = np.random.default_rng(5)

    def images(number: int) -> np.ndarray:
        return rng.integers(0, 256, (number, 28, 28), dtype=np.uint8)

    train, test = images(600), images(100)
    train[7], train[9] = test[3], train[8]
    files = {
        "MNIST/raw/train-images-idx3-ubyte": train,
        "MNIST/raw/train-labels-idx1-ubyte": (np.arange(600) % 10).astype(np.uint8),
        "MNIST/raw/t10k-images-idx3-ubyte": test,
        "MNIST/raw/t10k-labels-idx1-ubyte": (np.arange(100) % 10).astype(np.uint8),
        "FashionMNIST/raw/train-images-idx3-ubyte": images(520),
        "EMNIST/raw/emnist-letters-train-images-idx3-ubyte": images(530),
    }
    for place, (name, array) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if place % 2:  # some gzipped, some plain
            path.write_bytes(idx_bytes(array))
        else:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(idx_bytes(array), mtime=0))
    return root
