"""The contract of an embedder, the registry, and how a user's wish becomes one.

An embedder turns items into rows: pictures or texts into vectors of which near ones are alike. It is pure (a row
depends on its item and on nothing else), in evaluation mode, and the same on every machine up to rounding. Adding one
from outside::

    @wrssl.register_embedder("mine")
    class Mine(wrssl.Embedder):
        kind, dim, fingerprint = "image", 64, "mine-1"

        def rows(self, items):  # uint8 arrays (H, W, 3), or strings where kind is "text"
            return np.stack([...]).astype(np.float32)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wrssl.errors import OptionError
from wrssl.registry import Registry

if TYPE_CHECKING:
    from torch import nn

FloatRows: TypeAlias = npt.NDArray[np.float32]
Picture: TypeAlias = npt.NDArray[np.uint8]  # (H, W, 3)
IMAGE, TEXT = "image", "text"


class Embedder(ABC):
    """Items to rows.

    Attributes:
        kind: ``"image"`` or ``"text"``: what the items are.
        dim: the number of values in a row.
        fingerprint: changes whenever the same item would give another row: it names the rows in the cache, and a run
            that was trained with another one is refused.
        side: pixels to which a picture's shorter side may be reduced while it is decoded; None for the full picture.
        batch: items per call of ``rows``.
        parallel: whether ``rows`` may run in several threads at once, each of them on one core.
        wish: the text by which ``find_embedder`` found it, so that another process finds it too; None for an embedder
            that was made by hand.
    """

    kind: str
    dim: int
    fingerprint: str
    side: int | None = 256
    batch: int = 8
    parallel: bool = False
    wish: str | None = None

    @abstractmethod
    def rows(self, items: Sequence[Any]) -> FloatRows:
        """The rows of these items, ``(n, dim)``: uint8 pictures ``(H, W, 3)`` of any size, or strings."""

    def on(self, device: str) -> Embedder:
        """The embedder that gives the same rows, up to rounding, on this device; itself where it has no such form.

        Args:
            device: as torch names it, for example ``"cpu"`` or ``"cuda"``.
        """
        return self

    def torch_module(self) -> nn.Module | None:
        """A copy of its network that the caller may train or change; None where there is no network in torch."""
        return None


EMBEDDERS: Registry[Callable[..., Embedder]] = Registry("embedder", "wrssl.embedding")
register_embedder = EMBEDDERS.register
"""Decorator: the embedder is available under this name from now on."""
list_embedders = EMBEDDERS.names
"""The names of all registered embedders."""


class Joined(Embedder):
    """Several embedders of the same kind side by side, each row scaled to length 1: ``"lite0+lite1"``."""

    def __init__(self, parts: Sequence[Embedder]) -> None:
        kinds = {part.kind for part in parts}
        if len(kinds) > 1:
            raise OptionError("An embedder for images and one for texts cannot be joined; name two of the same kind.")
        self.parts = list(parts)
        self.kind = kinds.pop()
        self.dim = sum(part.dim for part in parts)
        self.fingerprint = "+".join(part.fingerprint for part in parts)
        sides = [part.side for part in parts]
        self.side = None if None in sides else max(side for side in sides if side is not None)
        self.batch = min(part.batch for part in parts)
        self.parallel = all(part.parallel for part in parts)

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """The rows of the parts, one after the other."""
        found = [part.rows(items) for part in self.parts]
        return np.concatenate([x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in found], axis=1)

    def on(self, device: str) -> Embedder:
        """Each part on this device."""
        moved = Joined([part.on(device) for part in self.parts])
        moved.wish = self.wish
        return moved


PREFIXES: dict[str, Callable[[str], Embedder]] = {}  # "onnx:" and the like, filled by the files of this room


def prefix(name: str) -> Callable[[Callable[[str], Embedder]], Callable[[str], Embedder]]:
    """Decorator: embedders that are named ``NAME:ARGUMENT``."""

    def keep(make: Callable[[str], Embedder]) -> Callable[[str], Embedder]:
        PREFIXES[name] = make
        return make

    return keep


def find_embedder(wish: Any) -> Embedder:
    """The embedder that was asked for.

    Args:
        wish: a registered name, several joined by ``+``, ``onnx:FILE``, ``hf:DIR-or-id``, ``timm:NAME``, an
            ``Embedder``, an ``nn.Module`` or a callable.
    """
    if isinstance(wish, Embedder):
        return wish
    if not isinstance(wish, str):
        from wrssl.embedding.torch_modules import of_callable

        return of_callable(wish)
    found = _named(wish)
    found.wish = wish
    return found


def _named(wish: str) -> Embedder:
    head, colon, rest = wish.partition(":")
    EMBEDDERS.names()  # importing the room fills the prefixes too
    if colon and head in PREFIXES:
        return PREFIXES[head](rest)
    parts = [EMBEDDERS.get(name)() for name in wish.split("+")]
    return parts[0] if len(parts) == 1 else Joined(parts)
