"""Embedding on a Dask cluster: machines that see the same files, or processes of this machine.

A part of the items is a task. The worker that gets it reads the files, embeds them in the batches that one machine
would make, so that the rows have the same bits, and sends them back in half precision; the calling process stores them
in its own cache, by content hash, as it stores rows of its own. So workers need no folder to write to, only one process
writes, and what is stored survives the cluster. Parts arrive one by one in the order in which they end, and few are
under way at a time: the memory of the caller is that of one machine.

A part whose worker dies is given to another one by the scheduler; a part that has arrived is never asked for again. An
embedder travels by its name and is opened once in every worker process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wrssl.data import Embedded
from wrssl.data.images import choose_jobs, formats, quiet
from wrssl.embedding.embedder import IMAGE, Embedder, FloatRows, find_embedder
from wrssl.embedding.pipeline import Batch, embed_items
from wrssl.errors import DataError, OptionError, WRSSLError
from wrssl.registry import load_plugin

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWER = 20.0  # seconds to wait for a scheduler, and for its first worker
PART = 64  # items per task: half a second of photographs, against a millisecond that a task costs
AHEAD = 3  # tasks per thread of the cluster that are under way, so that no worker waits for the caller
CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # reaches them too, and the caller ends them
LOOK = 5.0  # seconds between two looks at how many threads there are: workers come and go
GONE = 60.0  # seconds without any worker
POLL = 0.02  # seconds between two looks for results; tasks take longer, and others are under way
A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


def embed_on_dask(
    items: Sequence[Any],
    embedder: Any,
    *,
    address: str | None = None,
    jobs: int | None = None,
    plugins: Sequence[str | os.PathLike[str]] = (),
    views: int = 0,
    cache: Path | None = None,
    show: bool | None = None,
) -> Embedded:
    """What ``embed_items`` gives, computed by the workers of a Dask cluster.

    Rows are stored in ``cache`` by this process. Items are best given as paths, which all workers must be able to read;
    arrays and texts are sent. Without an address a script needs the usual ``if __name__ == "__main__":``.

    Args:
        items: files, pictures or texts.
        embedder: a name, two joined by ``+``, ``onnx:FILE``, ``hf:DIR-or-id`` or ``timm:NAME``, or an embedder that
            was found by one.
        address: of the scheduler, for example ``"tcp://host:8786"``; None starts processes on this machine.
        jobs: how many of these; default one per processor.
        plugins: files that register embedders, which the workers run too.
        views: augmented versions of each picture, embedded beside it.
        cache: where rows are kept; None keeps them in memory.
        show: a progress line; default on a terminal after two seconds.
    """
    wish = embedder if isinstance(embedder, str) else getattr(embedder, "wish", None)
    if not isinstance(wish, str):
        raise OptionError(
            f"Workers of a cluster find an embedder by its name, and {type(embedder).__name__} has none; register it "
            "with wrssl.register_embedder in a file that is given as a plugin."
        )
    for plugin in plugins:
        load_plugin(os.fspath(plugin))
    there = ByName(find_embedder(embedder), wish, plugins)
    if there.kind == IMAGE:  # workers may run in another folder
        items = [os.path.abspath(item) if isinstance(item, (str, os.PathLike)) else item for item in items]
    with connected(address, jobs) as cluster:
        cluster.check(there)
        return embed_items(items, there, views=views, cache=cache, show=show, spread=cluster)


class ByName(Embedder):
    """Stands for an embedder that every process opens for itself; this is what is sent.

    Args:
        embedder: the one of this process.
        wish: the text by which it was found.
        plugins: files that are run before it is looked for.
    """

    def __init__(self, embedder: Embedder, wish: str, plugins: Sequence[str | os.PathLike[str]] = ()) -> None:
        head, colon, rest = wish.partition(":")
        self.wish = f"{head}:{os.path.abspath(rest)}" if colon and os.path.exists(rest) else wish
        self.plugins = tuple(os.path.abspath(plugin) for plugin in plugins)
        self.kind, self.dim, self.fingerprint = embedder.kind, embedder.dim, embedder.fingerprint
        self.side, self.batch, self.parallel = embedder.side, embedder.batch, embedder.parallel

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """Those of the embedder of this process."""
        found = self.open()
        with nullcontext() if self.parallel else _one_at_a_time:
            return found.rows(items)

    def open(self) -> Embedder:
        """The embedder of this process; a ``DataError`` where it would give other rows than the caller's."""
        assert self.wish is not None
        with _one_opens:
            found = _opened(self.wish, self.plugins)
        if found.fingerprint != self.fingerprint:
            raise DataError(
                f"The embedder {self.wish!r} is {found.fingerprint} on a worker and {self.fingerprint} here; install "
                "the same versions on all machines and start the workers again."
            )
        return found


_one_opens, _one_at_a_time = threading.Lock(), threading.Lock()  # a worker may have several threads


@lru_cache(maxsize=4)
def _opened(wish: str, plugins: tuple[str, ...]) -> Embedder:
    for plugin in plugins:
        load_plugin(plugin)
    return find_embedder(wish)


def on_worker(work: Callable[[Batch], T], batches: Sequence[Batch]) -> list[T]:
    """A task: some batches, one after the other."""
    with _one_opens:
        formats()
    with quiet():
        return [work(batch) for batch in batches]


def check_on_worker(embedder: ByName) -> str | None:
    """What a worker lacks; None where it can embed. As text, since the error may be of a class it alone knows."""
    try:
        embedder.open()
    except WRSSLError as error:
        return str(error)
    return None


class Cluster:
    """Spreads batches over the workers of a cluster; a ``Spread`` of the pipeline."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._threads, self._looked, self._seen = 0, -LOOK, time.monotonic()

    def check(self, embedder: ByName) -> None:
        """Say what is missing on the workers before files are read."""
        self._check_versions()
        missing = next(self._results(check_on_worker, iter([embedder])))[1]
        if missing is not None:
            raise OptionError(f"A worker of the cluster cannot embed: {missing}")

    def _check_versions(self) -> None:
        """A worker that cannot import what a task names ends itself, and so every worker would."""
        with suppress(PackageNotFoundError):  # this process runs from a folder of source files
            mine = version("wrssl")
            for place, found in self._client.run(version, "wrssl", on_error="return").items():
                if found != mine:
                    there = "no wrssl" if isinstance(found, Exception) else f"wrssl {found}"
                    raise OptionError(f"The worker {place} has {there}; install {mine} there and start it again.")

    def __call__(
        self, work: Callable[[Batch], T], batches: Sequence[Batch], threads: int
    ) -> Generator[tuple[Batch, T], None, None]:
        """Each batch with what ``work`` gives for it, as they end; a worker's own threads count, not ``threads``."""
        with closing(self._results(partial(on_worker, work), self._parts(batches))) as found:
            for part, results in found:
                yield from zip(part, results, strict=True)

    def _results(self, function: Callable[[A], R], parts: Iterator[A]) -> Generator[tuple[A, R], None, None]:
        """Each part with what ``function`` gives for it on a worker, as they end; few are under way at a time."""
        from distributed import as_completed

        running: dict[Future[R], A] = {}
        done = as_completed(loop=self._client.loop)  # type: ignore[no-untyped-call]
        try:
            while True:
                for part in islice(parts, max(0, AHEAD * max(1, self._width()) - len(running))):
                    task = self._client.submit(function, part, pure=False)
                    running[task] = part
                    done.add(task)  # type: ignore[no-untyped-call]
                if not running:
                    return
                for task in self._ended(done):
                    found = outcome(task)
                    yield running.pop(task), found
        finally:
            self._client.cancel(list(running))  # type: ignore[no-untyped-call]

    def _ended(self, done: Any) -> list[Any]:
        """Tasks that have ended since the last call; waits for one, but not for a cluster without workers."""
        while not (found := done.next_batch(block=False)):
            if self._width() == 0 and time.monotonic() - self._seen > GONE:
                raise WRSSLError(
                    "All workers of the cluster are gone; rows that arrived are kept, so look at what the workers said "
                    "last, start them and run the same command again."
                )
            time.sleep(POLL)
        return list(found)

    def _parts(self, batches: Sequence[Batch]) -> Iterator[list[Batch]]:
        """Several batches to a task, fewer where there would be too few tasks for all workers."""
        size = max((len(batch.numbers) for batch in batches[:1]), default=1)
        step = max(1, min(PART // size, len(batches) // (2 * AHEAD * max(1, self._width()))))
        return (list(batches[low : low + step]) for low in range(0, len(batches), step))

    def _width(self) -> int:
        """The threads of all workers, as of late."""
        now = time.monotonic()
        if now - self._looked > LOOK:
            self._looked = now
            with suppress(OSError):  # of a scheduler that went away its tasks tell
                self._threads = sum(self._client.nthreads().values())  # type: ignore[no-untyped-call]
        if self._threads:
            self._seen = now
        return self._threads


def outcome(task: Future[T]) -> T:
    """What a task gave, or why it gave nothing."""
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        return task.result()
    except KilledWorker as error:
        raise WRSSLError(
            "A part of the items has ended several workers, often for want of memory; rows that arrived are kept, so "
            "run the same command again with fewer workers to a machine."
        ) from error
    except (CancelledError, CommClosedError) as error:
        raise WRSSLError(
            "The scheduler of the cluster went away; rows that arrived are kept, so start it and run the same command "
            "again."
        ) from error


@contextmanager
def connected(address: str | None, jobs: int | None) -> Iterator[Cluster]:
    """Within this there is a cluster: the one at ``address``, else processes of this machine.

    Args:
        address: of the scheduler.
        jobs: how many processes; default one per processor.
    """
    try:
        from distributed import Client, LocalCluster
        from distributed.comm.addressing import get_address_host_port
        from distributed.utils import silence_logging_cmgr
    except ImportError as error:
        raise OptionError('A Dask cluster needs dask; install it with: pip install "wrssl[distributed]"') from error
    if address is None:
        # No limit of memory: dask would end a process for the network that it opens, where it has many processors.
        processes = LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=choose_jobs(jobs), threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0,
            silence_logs=logging.CRITICAL, preload=[CTRL_C],
        )  # fmt: skip
        with processes, Client(processes, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            yield Cluster(client)
        return
    try:
        get_address_host_port(address)
    except ValueError as error:
        raise OptionError(f"{address!r} is no address of a Dask scheduler; give one as tcp://HOST:8786.") from error
    try:
        client = Client(address, timeout=ANSWER, set_as_default=False)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise OptionError(
            f"No Dask scheduler answers at {address}; start one with `dask scheduler`, and workers with `dask worker "
            f"{address}`."
        ) from error
    with silence_logging_cmgr(logging.CRITICAL), client:  # what goes wrong is said in one sentence
        try:
            client.wait_for_workers(1, timeout=ANSWER)
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise OptionError(
                f"The Dask scheduler at {address} has no worker; start some with `dask worker {address}`."
            ) from error
        yield Cluster(client)
