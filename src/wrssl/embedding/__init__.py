"""Items to rows: photographs, texts, anything; embedders, the cache, views."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wrssl.data import Embedded, kind_of
from wrssl.embedding import onnx_files, photos, texts, torch_modules
from wrssl.embedding.cache import cache_root, entries, keep_within, remove_all
from wrssl.embedding.distributed import embed_on_dask
from wrssl.embedding.embedder import (
    EMBEDDERS,
    IMAGE,
    TEXT,
    Embedder,
    FloatRows,
    find_embedder,
    list_embedders,
    register_embedder,
)
from wrssl.embedding.items import read_items
from wrssl.embedding.of_scenarios import NONE, OWN_EMBEDDER, Choice, choose_embedder, embed_scenario
from wrssl.embedding.pipeline import embed_items
from wrssl.errors import DataError

__all__ = [
    "EMBEDDERS",
    "IMAGE",
    "NONE",
    "OWN_EMBEDDER",
    "TEXT",
    "Choice",
    "Embedded",
    "Embedder",
    "cache_root",
    "choose_embedder",
    "embed",
    "embed_all",
    "embed_items",
    "embed_on_dask",
    "embed_scenario",
    "entries",
    "find_embedder",
    "keep_within",
    "kind_of",
    "list_embedders",
    "onnx_files",
    "photos",
    "read_items",
    "register_embedder",
    "remove_all",
    "texts",
    "torch_modules",
]


def embed(
    items: Sequence[Any],
    embedder: Any = "lite0",
    views: int = 0,
    cache_dir: str | os.PathLike[str] | bool | None = None,
    progress: bool | None = None,
) -> FloatRows:
    """Photographs or texts as rows of numbers of which near ones are alike.

    Rows are computed once and kept in the cache by the content of their item, so a second call is quick.

    Args:
        items: paths, PIL images, uint8 arrays ``(H, W, 3)`` or ``(H, W)``; strings for an embedder of texts.
        embedder: a registered name (``wrssl.list_embedders()``), two joined as in ``"lite0+lite1"``, ``"onnx:FILE"``,
            ``"hf:DIR-or-id"``, ``"timm:NAME"``, an ``Embedder``, an ``nn.Module`` or a function.
        views: augmented versions of each photograph, embedded beside it.
        cache_dir: where rows are kept; default ``$WRSSL_CACHE``, else the user's cache folder; False for nowhere.
        progress: show a bar; default on a terminal after two seconds.

    Returns:
        float32 ``(n, dim)``; with views ``(views + 1, n, dim)``, the items themselves first.
    """
    rows = embed_all(items, find_embedder(embedder), cache_root(cache_dir), views, progress)
    return rows if views else rows[0]


def embed_all(
    items: Sequence[Any], embedder: Embedder, cache: Path | None, views: int = 0, show: bool | None = None
) -> FloatRows:
    """The rows of these items and their views, (views + 1, n, dim); an item that cannot be read is an error."""
    if isinstance(items, (str, os.PathLike)):
        raise DataError("items must be a list, for example [path] or [text], not a single one.")
    found = embed_items(items, embedder, views=views, cache=cache, show=show)
    if found.reasons:
        first = min(found.reasons)
        raise DataError(
            f"{len(found.reasons)} of {len(items)} items cannot be read (first: number {first}, "
            f"{found.reasons[first]}); leave them out."
        )
    return np.stack([np.asarray(view, dtype=np.float32) for view in found.rows])
