"""From items to rows: hash, look up, open and embed what is new, store it as it comes.

The items are hashed first, which reads every file once. Then what is missing is opened and embedded by several threads:
reading, decoding and the network release the interpreter's lock, so they overlap. Rows are stored every few seconds,
so that a killed program goes on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wrssl import progress
from wrssl.data.images import Unreadable, choose_jobs, formats, in_order, quiet
from wrssl.embedding.cache import Halves, Keys, RowCache, as_halves, as_keys, keep_within, limit
from wrssl.embedding.embedder import IMAGE, Embedder
from wrssl.embedding.items import content, key_of, opened
from wrssl.embedding.views import augmented
from wrssl.errors import DataError, OptionError

STORE_EVERY = 5.0  # seconds
STORE_ROWS = 4096
_HASHED_AT_ONCE = 64


@dataclass(frozen=True)
class Embedded:
    """The rows of some items.

    Attributes:
        rows: float16 ``(views + 1, n, dim)``, one per readable item, in order; the first view is the item itself.
        readable: True for each item that has a row.
        reasons: why the others have none.
        computed: how many rows were not in the cache.
        trouble: why rows could not be stored; None where they could.
    """

    rows: list[Halves]
    readable: npt.NDArray[np.bool_]
    reasons: dict[int, str]
    computed: int
    trouble: str | None


def embed_items(
    items: Sequence[Any],
    embedder: Embedder,
    *,
    views: int = 0,
    cache: Path | None = None,
    jobs: int | None = None,
    show: bool | None = None,
) -> Embedded:
    """The rows of all items that can be read.

    Args:
        items: files, pictures or texts.
        embedder: what to embed them with.
        views: augmented versions of each picture, embedded beside it.
        cache: where rows are kept; None keeps them in memory.
        jobs: threads; default one per processor.
        show: a progress line; default on a terminal after two seconds.
    """
    if views and embedder.kind != IMAGE:
        raise OptionError("Only pictures have views; leave views at 0 for texts.")
    threads = choose_jobs(jobs)
    if embedder.kind == IMAGE:
        formats()  # before there are threads
    keys, readable, reasons = _hash(items, embedder.kind, threads, show)
    rows, computed, trouble = [], 0, None
    for view in range(views + 1):
        folder = None if cache is None else cache / "embeddings" / folder_name(embedder.fingerprint) / f"view-{view}"
        store = RowCache(folder, embedder.dim)
        computed += _fill(store, items, keys, readable, reasons, embedder, view, threads, show)
        store.merge()
        rows.append(store.take(store.places(as_keys([keys[i] for i in np.flatnonzero(readable)]))))
        trouble = trouble or store.trouble
    if cache is not None and computed:
        keep_within(cache, limit())
    return Embedded(rows, readable, reasons, computed, trouble)


def folder_name(fingerprint: str) -> str:
    """A fingerprint as the name of a folder."""
    return "".join(c if c.isalnum() or c in "-+._" else "_" for c in fingerprint)[:120]


def _hash(
    items: Sequence[Any], kind: str, threads: int, show: bool | None
) -> tuple[list[bytes], npt.NDArray[np.bool_], dict[int, str]]:
    def one(item: Any) -> bytes | Unreadable:
        data = content(item, kind)
        return data if isinstance(data, Unreadable) else key_of(data)

    keys: list[bytes] = []
    reasons: dict[int, str] = {}
    with (
        progress.bar("reading what is to be embedded", len(items), show=show) as tick,
        closing(in_order(one, items, threads, _HASHED_AT_ONCE)) as found,
    ):
        for number, key in enumerate(found):
            tick()
            if isinstance(key, Unreadable):
                reasons[number] = key.reason
            keys.append(b"" if isinstance(key, Unreadable) else key)
    readable = np.ones(len(items), dtype=np.bool_)
    readable[list(reasons)] = False
    return keys, readable, reasons


def _fill(
    store: RowCache,
    items: Sequence[Any],
    keys: list[bytes],
    readable: npt.NDArray[np.bool_],
    reasons: dict[int, str],
    embedder: Embedder,
    view: int,
    threads: int,
    show: bool | None,
) -> int:
    """Compute and store the rows that the store lacks; what cannot be opened moves to ``reasons``."""
    present = np.flatnonzero(readable)
    missing = present[store.places(as_keys([keys[i] for i in present])) < 0]
    first: dict[bytes, list[int]] = {}  # equal items are embedded once
    for number in missing.tolist():
        first.setdefault(keys[number], []).append(number)
    wanted = [numbers[0] for numbers in first.values()]
    batches = [wanted[low : low + embedder.batch] for low in range(0, len(wanted), embedder.batch)]

    def one(batch: list[int]) -> list[Any]:
        found = [_open(items[i], keys[i], embedder, view) for i in batch]
        good = [item for item in found if not isinstance(item, Unreadable)]
        rows = iter(checked(embedder, embedder.rows(good), len(good)) if good else ())
        return [item if isinstance(item, Unreadable) else next(rows) for item in found]

    done, waiting = 0, _Waiting(store)
    workers = threads if embedder.parallel else 1
    title = f"embedding with {embedder.fingerprint.split('-')[0]}" + (f", view {view}" if view else "")
    with (
        quiet(),
        progress.bar(title, len(wanted), show=show) as tick,
        closing(in_order(one, batches, workers, 1)) as outcomes,
        closing(waiting),
    ):
        for batch, rows in zip(batches, outcomes, strict=True):
            for number, row in zip(batch, rows, strict=True):
                if isinstance(row, Unreadable):
                    for same in first[keys[number]]:
                        readable[same], reasons[same] = False, row.reason
                else:
                    waiting.add(keys[number], row)
                    done += 1
            tick(len(batch))
    return done


def _open(item: Any, key: bytes, embedder: Embedder, view: int) -> Any:
    found = opened(item, key, embedder.kind, embedder.side)
    if view == 0 or isinstance(found, Unreadable):
        return found
    return augmented(found, np.random.default_rng([int.from_bytes(key, "little"), view]))


def checked(embedder: Embedder, rows: Any, count: int) -> npt.NDArray[np.float16]:
    """What the embedder returned, as float16, or a ``DataError`` that names what is wrong with it."""
    values = np.asarray(rows)
    if values.shape != (count, embedder.dim) or values.dtype.kind != "f":
        raise DataError(
            f"The embedder {embedder.fingerprint} gave {values.dtype} of shape {values.shape} for {count} items; it "
            f"must give floats of shape ({count}, {embedder.dim})."
        )
    return as_halves(values)


class _Waiting:
    """Rows that are computed and not stored yet."""

    def __init__(self, store: RowCache) -> None:
        self._store, self._since = store, time.monotonic()
        self._keys: list[bytes] = []
        self._rows: list[Halves] = []

    def add(self, key: bytes, row: Halves) -> None:
        """One row more; stores all where that is due."""
        self._keys.append(key)
        self._rows.append(row)
        if len(self._rows) >= STORE_ROWS or time.monotonic() - self._since > STORE_EVERY:
            self.close()

    def close(self) -> None:
        """Store what there is, after an error or an interrupt too."""
        if self._rows:
            keys: Keys = as_keys(self._keys)
            self._store.add(keys, np.stack(self._rows))
            self._keys, self._rows = [], []
        self._since = time.monotonic()
