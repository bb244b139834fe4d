"""The one way to show that something goes on: on standard error, on a terminal only, and after two seconds.

    with progress.bar("decoding images", total=len(files)) as tick:
        for file in files: ...; tick()
    for rows in progress.slices(size, 10_000, "judging the pool"): ...
    with progress.note("finding the clusters of the pool"): ...

``show=None`` looks whether standard error is a terminal; True shows a bar from the first item on, False never. Within
``progress.silent()`` nothing is shown. What has finer news than a count (loss, accuracy) passes it as ``info``.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

PATIENCE = 2.0  # seconds before anything is shown
REFRESH = 0.25  # seconds between two looks at what a caller has to compute for the bar
_silent: list[bool] = []


class Tick(Protocol):
    """Moves a bar."""

    def __call__(self, count: float = 1, info: str | Callable[[], str] = "", title: str | None = None) -> None:
        """Advance by ``count``; ``info`` follows the time left, as a function it is called only when it is shown."""


def is_watched(show: bool | None = None) -> bool:
    """Whether progress is to be shown: ``show`` where it says something, else whether standard error is a terminal."""
    return not any(_silent) and (sys.stderr.isatty() if show is None else show)


def say(line: str) -> None:
    """One line on standard error, which passes above a bar; nothing where progress is not shown."""
    if is_watched():
        print(line, file=sys.stderr, flush=True)


@contextmanager
def silent(wanted: bool = True) -> Iterator[None]:
    """Within this nothing is shown, if that is wanted. For the whole process: a timer's thread has no context."""
    _silent.append(wanted)
    try:
        yield
    finally:
        _silent.remove(wanted)


@contextmanager
def note(title: str) -> Iterator[None]:
    """Says ``title`` once if what happens within takes longer than two seconds; for work that cannot be counted."""
    if not is_watched():
        yield
        return
    timer = threading.Timer(PATIENCE, say, (f"{title} …",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def slices(size: int, step: int, title: str) -> Iterator[slice]:
    """The slices 0:step, step:2·step, … of ``size`` rows; says how far it is after 2, 4, 8, … seconds."""
    start, due = time.monotonic(), PATIENCE
    for low in range(0, size, step):
        done = min(low + step, size)
        yield slice(low, done)
        elapsed = time.monotonic() - start
        if elapsed > due and done < size:
            due = 2 * elapsed
            say(f"{title}: {100 * done // size} %, about {elapsed * (size - done) / done:.0f} s left")


@contextmanager
def bar(
    title: str, total: float | None = None, *, done: float = 0, show: bool | None = None, unit: str = "items"
) -> Iterator[Tick]:
    """A bar with the time left, which vanishes at the end; yields what moves it.

    Args:
        title: shown beside the bar.
        total: how many there will be, where that is known.
        done: how many there are already.
        show: see the top of this file.
        unit: ``"items"`` counts, ``"bytes"`` shows sizes and the speed, ``"share"`` shows no numbers.
    """
    if not is_watched(show):
        yield _nothing
        return
    shown, looked = None, -REFRESH
    due = time.monotonic() + (PATIENCE if show is None else 0)

    def tick(count: float = 1, info: str | Callable[[], str] = "", title: str | None = None) -> None:
        nonlocal shown, looked, done
        done, now = done + count, time.monotonic()
        if shown is None:
            if now < due:
                return
            shown = _started(name, total, unit)
        news: dict[str, Any] = {"completed": done} if title is None else {"completed": done, "description": title}
        if now - looked >= REFRESH or not callable(info):
            looked = now
            news["info"] = info() if callable(info) else info
        shown.update(shown.task_ids[0], **news)

    name = title
    if show:
        tick(0)
    try:
        yield tick
    finally:
        if shown is not None:
            shown.stop()


def _nothing(count: float = 1, info: str | Callable[[], str] = "", title: str | None = None) -> None:
    """Moves no bar."""


def _started(title: str, total: float | None, unit: str) -> Any:
    from rich.console import Console  # only where a bar is shown
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    counts: dict[str, tuple[Any, ...]] = {
        "items": (MofNCompleteColumn(), TimeRemainingColumn()),
        "bytes": (DownloadColumn(), TransferSpeedColumn()),
        "share": (),
    }
    columns = (TextColumn("{task.description}"), BarColumn(), *counts[unit])
    console = Console(stderr=True)
    shown = Progress(*columns, TextColumn("{task.fields[info]}", markup=False), console=console, transient=True)
    shown.add_task(title, total=total, info="")
    shown.start()
    return shown
