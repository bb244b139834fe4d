"""A function over many items by several threads: results in order, a bounded number of them under way.

Threads and not processes: Pillow decodes and resizes without the interpreter's lock, and processes would need a main
module that can be imported again, which a user's script or notebook often is not.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from wrssl.api import OptionError

T = TypeVar("T")
R = TypeVar("R")
_MOST = 16  # threads, unless more are asked for; the disk is slower than that


def choose_jobs(asked: int | None) -> int:
    """The number of threads: as asked, else the processors that this process may use."""
    if asked is None:
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(usable, _MOST)
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise OptionError(f"jobs must be a whole number of at least 1, not {asked!r}; leave it out to have it chosen.")
    return asked


def in_order(function: Callable[[T], R], items: Sequence[T], jobs: int, batch: int) -> Iterator[R]:
    """``map(function, items)`` by ``jobs`` threads, ``batch`` items at a time so that handing over costs little."""
    if jobs == 1 or len(items) <= 1:
        yield from map(function, items)
        return

    def run(start: int) -> list[R]:
        return [function(item) for item in items[start : start + batch]]

    starts = iter(range(0, len(items), batch))
    waiting: deque[Future[list[R]]] = deque()
    with ThreadPoolExecutor(jobs, thread_name_prefix="wrssl-images") as pool:
        try:
            waiting.extend(pool.submit(run, start) for start in islice(starts, 2 * jobs))
            while waiting:
                done = waiting.popleft().result()
                waiting.extend(pool.submit(run, start) for start in islice(starts, 1))
                yield from done
        finally:  # whoever stops listening does not wait for the rest
            for future in waiting:
                future.cancel()


_quiet_lock = threading.Lock()
_quiet_users = 0
_quiet_filters: warnings.catch_warnings[None] | None = None


@contextmanager
def quiet() -> Iterator[None]:
    """No warning of Pillow's (about strange metadata, say) is shown or becomes an error, in any thread, until the end.

    Entered by the thread that waits and not by workers: the filters are common to all threads. Of several that wait at
    once the first sets them and the last puts them back.
    """
    global _quiet_users, _quiet_filters
    with _quiet_lock:
        if _quiet_users == 0:
            _quiet_filters = warnings.catch_warnings()
            _quiet_filters.__enter__()
            warnings.simplefilter("ignore")
        _quiet_users += 1
    try:
        yield
    finally:
        with _quiet_lock:
            _quiet_users -= 1
            if _quiet_users == 0 and _quiet_filters is not None:
                _quiet_filters.__exit__(None, None, None)
