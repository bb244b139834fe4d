"""A bar with the time left for a person who waits for many files: on standard error, and only after two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, TypeVar

from wrssl.data.patience import PATIENCE
from wrssl.data.progress import counting_bar

T = TypeVar("T")


def counted(items: Iterator[T], title: str, total: int, show: bool | None) -> Iterator[T]:
    """The items themselves; a bar counts them.

    Args:
        items: what takes its time.
        title: shown beside the bar.
        total: how many there will be.
        show: None for "where standard error is a terminal"; True shows it from the first item on.
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield from items
        return
    due = time.monotonic() + (PATIENCE if show is None else 0)
    bar: Any = None
    try:
        for done, item in enumerate(items):
            if bar is None and time.monotonic() >= due:
                bar = counting_bar()
                bar.start()
                task = bar.add_task(title, total=total, completed=done)
            if bar is not None:
                bar.update(task, completed=done + 1)
            yield item
    finally:
        if bar is not None:
            bar.stop()
