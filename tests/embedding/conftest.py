from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from wrssl.embedding import Embedder


class Tiles(Embedder):
    """The mean color of 4 × 4 tiles, 48 values; counts what it is asked for."""

    kind, dim, fingerprint, side, batch = "image", 48, "tiles-1", None, 3

    def __init__(self) -> None:
        self.asked = 0

    def rows(self, items):
        self.asked += len(items)
        tiles = [[np.array_split(r, 4, axis=1) for r in np.array_split(item, 4, axis=0)] for item in items]
        return np.array([[t.mean((0, 1)) for row in t4 for t in row] for t4 in tiles], np.float32).reshape(-1, 48) / 255


class Letters(Embedder):
    """How often each of 26 letters stands in a text."""

    kind, dim, fingerprint = "text", 26, "letters-1"

    def rows(self, items):
        return np.array([[text.count(chr(97 + k)) for k in range(26)] for text in items], np.float32)


@pytest.fixture
def tiles():
    return Tiles()


@pytest.fixture
def letters():
    return Letters()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache that nobody else uses."""
    monkeypatch.setenv("WRSSL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def pictures():
    """Twelve different pictures of different sizes."""
    made = []
    for k in range(12):
        seed = int.from_bytes(hashlib.blake2b(bytes([k]), digest_size=4).digest(), "little")
        made.append(np.random.default_rng(seed).integers(0, 256, (20 + 7 * k, 30 + 5 * k, 3), dtype=np.uint8))
    return made


@pytest.fixture(scope="session")
def photo_files(tmp_path_factory):
    """Smooth pictures as JPEG and PNG files."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("photos")
    paths = []
    for k in range(10):
        y, x = np.mgrid[0:150, 0:200] / 100
        waves = [np.sin((k + 2) * x + c) * np.cos((3 + c) * y + k) for c in range(3)]
        picture = np.uint8(127.5 + 120 * np.stack(waves, 2))
        path = folder / (f"{k}.jpg" if k % 2 else f"{k}.png")
        Image.fromarray(picture).save(path)
        paths.append(path)
    return paths


@pytest.fixture
def tiny_bert(tmp_path):
    """The folder of a model of texts that knows two words, as ``save_pretrained`` writes it."""
    transformers = pytest.importorskip("transformers", reason="the extra 'hub' is not installed")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "money", "cat"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    with torch.random.fork_rng(devices=[]):
        transformers.BertModel(config).save_pretrained(tmp_path / "model")
    transformers.BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "model")
    return tmp_path / "model"
