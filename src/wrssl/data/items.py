"""Items: files and texts that are no rows of numbers yet, and what is known about rows that were made of them.

A scenario of items reads nothing until somebody asks for its rows. ``wrssl.fit`` first decides whether an embedder
makes the rows (``wrssl.embedding``); only where none does are images decoded to pixels.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

if TYPE_CHECKING:
    from wrssl.data.scenario import Origin

IMAGE, TEXT = "image", "text"
_LONGEST_PATH = 4096


@dataclass(frozen=True)
class Items:
    """What the rows of a scenario were made of, in the order of the rows.

    Attributes:
        kind: ``"image"`` or ``"text"``.
        labeled: paths, pictures or texts, one per labeled row.
        pool: one per member of the pool.
    """

    kind: str
    labeled: Sequence[Any]
    pool: Sequence[Any]


@dataclass(frozen=True)
class Embedding:
    """How the rows of a scenario came to be, where they are an embedding.

    Attributes:
        name: of the embedder, as it can be asked for again; ``"own rows"`` for rows that the user brought.
        fingerprint: of the embedder; empty for own rows.
        why: how it was chosen, one sentence.
        items: what was embedded; None for own rows.
        pool_views: rows of augmented versions of the pool's pictures, one table (M, d) per view.
        known_views: the same of the labeled pictures, then those of the validation part.
    """

    name: str
    fingerprint: str
    why: str
    items: Items | None = None
    pool_views: Sequence[Tensor] = ()
    known_views: Sequence[Tensor] = ()

    def to_json(self) -> dict[str, Any]:
        """What config.json says."""
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "why": self.why,
            "kind": None if self.items is None else self.items.kind,
            "views": len(self.pool_views),
        }


@dataclass(frozen=True)
class Embedded:
    """The rows of some items that could be read.

    Attributes:
        rows: ``(n, d)`` each, one row per readable item, in order; first of the items themselves, then of their views.
        readable: True for each item that has a row.
        reasons: why the others have none, by number.
        computed: how many rows were not in the cache.
        trouble: why rows could not be stored; None where they could.
    """

    rows: Sequence[npt.NDArray[Any]]
    readable: npt.NDArray[np.bool_]
    reasons: dict[int, str]
    computed: int = 0
    trouble: str | None = None


@dataclass(frozen=True)
class Content:
    """Rows and labels of all parts, as ``Scenario`` takes them.

    Attributes:
        labeled: rows and labels.
        pool: rows.
        validation: as ``labeled``, or None.
        test: as ``labeled``, or None.
        ids: a name per pool row; None for the row numbers.
        origin: where the rows come from.
        items: what they were made of.
        pool_views: further views of the pool, where it is embedded.
        known_views: of the labeled and then of the validation rows.
        is_ood: the truth about the pool, where it is known.
    """

    labeled: tuple[Any, Any]
    pool: Any
    validation: tuple[Any, Any] | None
    test: tuple[Any, Any] | None
    ids: Sequence[Any] | None
    origin: Origin
    items: Items
    pool_views: Sequence[Any] = field(default=())
    known_views: Sequence[Any] = field(default=())
    is_ood: Any = None


Embed: TypeAlias = Callable[[Sequence[Any], str], Embedded]  # the items of a part, and the part's name


class Unread(ABC):
    """The parts of a scenario as items that were not read yet.

    Attributes:
        kind: ``"image"`` or ``"text"``.
        name: of the scenario.
        augment: as for ``Scenario``.
        cache_dir: where rows of an embedding are kept, as for ``wrssl.embed``.
        jobs: threads; None for one per processor.
    """

    kind: str
    name: str
    augment: str | None = None
    cache_dir: str | os.PathLike[str] | bool | None = None
    jobs: int | None = None

    @abstractmethod
    def labeled_items(self) -> Sequence[Any]:
        """Paths, pictures or texts of the labeled part."""

    @abstractmethod
    def as_pixels(self) -> Content:
        """All parts, images decoded to one size; texts are an error."""

    @abstractmethod
    def embedded(self, embed: Embed) -> Content:
        """All parts, in the rows that ``embed`` makes of items."""


def are_items(values: Any) -> bool:
    """Whether these are texts or paths: a list, an array or a series of strings or path objects."""
    if isinstance(values, (str, bytes, os.PathLike)) or not hasattr(values, "__len__") or len(values) == 0:
        return False
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind not in "UOT" or getattr(values, "ndim", 1) != 1:  # numbers, a table
        return False
    try:
        first = next(iter(values))
    except TypeError:
        return False
    return isinstance(first, (str, os.PathLike))


def kind_of(items: Sequence[Any]) -> str:
    """Whether these items are images or texts: strings that name no file are texts."""
    first = next(iter(items)) if len(items) else ""
    if not isinstance(first, str):
        return IMAGE
    return IMAGE if len(first) < _LONGEST_PATH and "\n" not in first and os.path.isfile(first) else TEXT
