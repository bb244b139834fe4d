"""From items to rows: hash, look up, open and embed what is new, store it as it comes.

The items are hashed first, which reads every file once. Then what is missing is opened and embedded, a batch at a time.
Both are spread in the same way: over threads of this process, as reading, decoding and the network release the
interpreter's lock, or over a cluster (``distributed.py``). Rows are stored here, every few seconds, so that a killed
program goes on where it stopped.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, overload

import numpy as np
import numpy.typing as npt

from wrssl import progress
from wrssl.data import Embedded
from wrssl.data.images import Unreadable, choose_jobs, formats, in_order, quiet
from wrssl.embedding.cache import KEY, Halves, Keys, RowCache, as_halves, as_keys, first_of_each, keep_within, limit
from wrssl.embedding.embedder import IMAGE, Embedder
from wrssl.embedding.items import content, key_of, opened
from wrssl.embedding.views import augmented
from wrssl.errors import DataError, OptionError

STORE_EVERY = 5.0  # seconds
STORE_ROWS = 4096
_HASHED_AT_ONCE = 64
T = TypeVar("T")


class Batch(NamedTuple):
    """Some items that are hashed or embedded in one call.

    Attributes:
        numbers: which of all items they are.
        items: as they were given.
        keys: the hashes of their contents, once these are known.
    """

    numbers: list[int]
    items: list[Any]
    keys: list[bytes]


class Batches(Sequence[Batch]):
    """Some of the items, a batch at a time; they are taken out when a batch is asked for: a pool may be on disk.

    Args:
        items: all of them.
        keys: their hashes, uint8 (n, KEY).
        numbers: which ones.
        size: items in a batch.
    """

    def __init__(
        self, items: Sequence[Any], keys: npt.NDArray[np.uint8], numbers: npt.NDArray[np.intp], size: int
    ) -> None:
        self.numbers = numbers
        self._items, self._keys, self._size = items, keys, size
        self._lock = threading.Lock()  # what gives the items need not bear several threads

    def __len__(self) -> int:
        return -(-len(self.numbers) // self._size)

    @overload
    def __getitem__(self, place: int) -> Batch: ...
    @overload
    def __getitem__(self, place: slice) -> list[Batch]: ...
    def __getitem__(self, place: int | slice) -> Batch | list[Batch]:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        start = range(len(self))[place] * self._size
        cut = self.numbers[start : start + self._size]
        with self._lock:
            items = [self._items[number] for number in cut.tolist()]
        return Batch(cut.tolist(), items, [key.tobytes() for key in self._keys[cut]])


class Spread(Protocol):
    """Where batches are worked on."""

    def __call__(
        self, work: Callable[[Batch], T], batches: Sequence[Batch], threads: int
    ) -> Generator[tuple[Batch, T], None, None]:
        """Each batch once with what ``work`` gives for it, in any order; at most ``threads`` at once in a process."""


def over_threads(
    work: Callable[[Batch], T], batches: Sequence[Batch], threads: int
) -> Generator[tuple[Batch, T], None, None]:
    """Threads of this process, in order."""

    def both(batch: Batch) -> tuple[Batch, T]:
        return batch, work(batch)

    with closing(in_order(both, batches, threads, 1)) as found:
        yield from found


def embed_items(
    items: Sequence[Any],
    embedder: Embedder,
    *,
    views: int = 0,
    cache: Path | None = None,
    jobs: int | None = None,
    show: bool | None = None,
    spread: Spread = over_threads,
) -> Embedded:
    """The rows of all items that can be read.

    Args:
        items: files, pictures or texts.
        embedder: what to embed them with.
        views: augmented versions of each picture, embedded beside it.
        cache: where rows are kept; None keeps them in memory.
        jobs: threads; default one per processor.
        show: a progress line; default on a terminal after two seconds.
        spread: where the work is done; other places than this process also need an embedder that can go there, see
            ``embed_on_dask``.
    """
    if views and embedder.kind != IMAGE:
        raise OptionError("Only pictures have views; leave views at 0 for texts.")
    threads = choose_jobs(jobs)
    if embedder.kind == IMAGE:
        formats()  # before there are threads
    pool = _hashed(items, embedder.kind, threads, show, spread)
    stores, computed = list[RowCache](), 0
    for view in range(views + 1):
        folder = None if cache is None else cache / "embeddings" / folder_name(embedder.fingerprint) / f"view-{view}"
        store = RowCache(folder, embedder.dim)
        missing = pool.missing(store, embedder.batch)
        title = f"embedding with {embedder.fingerprint.split('-')[0]}" + (f", view {view}" if view else "")
        with quiet(), progress.bar(title, len(missing.numbers), show=show) as tick:
            made = spread(partial(embed_batch, embedder, view), missing, threads if embedder.parallel else 1)
            computed += _keep(made, pool, store, tick)
        store.merge()
        stores.append(store)
    # Only now it is known which items all views could be made of.
    good = pool.hashes(np.flatnonzero(pool.readable()))
    rows = [store.take(store.places(good)) for store in stores]
    trouble = next((store.trouble for store in stores if store.trouble is not None), None)
    if cache is not None and computed:
        keep_within(cache, limit())
    return Embedded(rows, pool.readable(), dict(sorted(pool.reasons.items())), computed, trouble)


def folder_name(fingerprint: str) -> str:
    """A fingerprint as the name of a folder."""
    return "".join(c if c.isalnum() or c in "-+._" else "_" for c in fingerprint)[:120]


@dataclass
class _Pool:
    """The items with the hashes of their contents, uint8 (n, KEY), and the reasons of those that cannot be read."""

    items: Sequence[Any]
    keys: npt.NDArray[np.uint8]
    reasons: dict[int, str] = field(default_factory=dict)

    def readable(self) -> npt.NDArray[np.bool_]:
        """True for the others."""
        found = np.ones(len(self.items), dtype=np.bool_)
        found[list(self.reasons)] = False
        return found

    def hashes(self, numbers: npt.NDArray[np.intp]) -> Keys:
        """Of these items."""
        return self.keys[numbers].view(f"V{KEY}").reshape(-1)

    def missing(self, store: RowCache, size: int) -> Batches:
        """What the store lacks; of items with equal contents the first one only."""
        present = np.flatnonzero(self.readable())
        new = present[store.places(self.hashes(present)) < 0]
        return Batches(self.items, self.keys, new[first_of_each(self.hashes(new))], size)

    def leave_out(self, bad: dict[bytes, str]) -> None:
        """All items with these contents, which cannot be opened."""
        for number in np.flatnonzero(self.readable()).tolist() if bad else ():
            reason = bad.get(self.keys[number].tobytes())
            if reason is not None:
                self.reasons[number] = reason


def _hashed(items: Sequence[Any], kind: str, threads: int, show: bool | None, spread: Spread) -> _Pool:
    pool = _Pool(items, np.zeros((len(items), KEY), dtype=np.uint8))
    if kind != IMAGE or not all(isinstance(item, (str, os.PathLike)) for item in items):
        spread = over_threads  # to send what is in memory takes longer than to hash it
    batches = Batches(items, pool.keys, np.arange(len(items)), _HASHED_AT_ONCE)
    with (
        progress.bar("reading what is to be embedded", len(items), show=show) as tick,
        closing(spread(partial(hash_batch, kind), batches, threads)) as found,
    ):
        for batch, hashes in found:
            for number, key in zip(batch.numbers, hashes, strict=True):
                if isinstance(key, Unreadable):
                    pool.reasons[number] = key.reason
                else:
                    pool.keys[number] = np.frombuffer(key, dtype=np.uint8)
            tick(len(batch.numbers))
    return pool


def hash_batch(kind: str, batch: Batch) -> list[bytes | Unreadable]:
    """The hash of each content."""
    found = [content(item, kind) for item in batch.items]
    return [data if isinstance(data, Unreadable) else key_of(data) for data in found]


class Made(NamedTuple):
    """What became of a batch: the rows of the items that could be opened, and the reasons of the others by place."""

    rows: Halves
    bad: dict[int, str]


def embed_batch(embedder: Embedder, view: int, batch: Batch) -> Made:
    """Open the items and embed them."""
    found = [_open(item, key, embedder, view) for item, key in zip(batch.items, batch.keys, strict=True)]
    good = [item for item in found if not isinstance(item, Unreadable)]
    rows = checked(embedder, embedder.rows(good), len(good)) if good else np.empty((0, embedder.dim), np.float16)
    return Made(rows, {place: item.reason for place, item in enumerate(found) if isinstance(item, Unreadable)})


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


def _keep(made: Generator[tuple[Batch, Made], None, None], pool: _Pool, store: RowCache, tick: progress.Tick) -> int:
    """Store the rows as they come; how many there were."""
    done, bad, start = 0, dict[bytes, str](), time.monotonic()
    with closing(made), closing(_Waiting(store)) as waiting:
        for batch, (rows, reasons) in made:
            bad.update({batch.keys[place]: reason for place, reason in reasons.items()})
            waiting.add([key for place, key in enumerate(batch.keys) if place not in reasons], rows)
            done += len(rows)
            tick(len(batch.numbers), info=f"{done / max(time.monotonic() - start, 1e-9):.0f}/s")
    pool.leave_out(bad)
    return done


class _Waiting:
    """Rows that are computed and not stored yet."""

    def __init__(self, store: RowCache) -> None:
        self._store, self._since = store, time.monotonic()
        self._keys: list[bytes] = []
        self._rows: list[Halves] = []

    def add(self, keys: list[bytes], rows: Halves) -> None:
        """Some rows more; stores all where that is due."""
        self._keys += keys
        self._rows.append(rows)
        if len(self._keys) >= STORE_ROWS or time.monotonic() - self._since > STORE_EVERY:
            self.close()

    def close(self) -> None:
        """Store what there is, after an error or an interrupt too."""
        if self._keys:
            self._store.add(as_keys(self._keys), np.concatenate(self._rows))
        self._keys, self._rows = [], []
        self._since = time.monotonic()
