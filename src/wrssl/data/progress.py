"""Progress bars: on a terminal only, and on stderr, so that output can be piped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_bar(name: str, done: int, total: int | None, show: bool | None) -> Iterator[Callable[[int], None]]:
    """For a download: yield ``advance(bytes)``.

    Args:
        name: shown beside the bar.
        done: bytes that are there already.
        total: bytes in all, where known.
        show: None for "where stderr is a terminal".
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda count: None
        return
    from rich.console import Console  # only where a bar is shown
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task(name, total=total, completed=done)
        yield lambda count: bars.advance(task, count)


def counting_bar(*more: Any) -> Any:
    """A rich bar that counts, with the time left; it vanishes when it stops.

    Args:
        more: columns after the usual ones.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, *more, console=Console(stderr=True), transient=True)
