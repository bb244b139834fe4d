"""Something to read for a person who waits more than two seconds; silent where standard error is no terminal.

Whole lines and no control characters, so that they pass above a progress bar that is on the screen already.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds before the first line
_silent: list[bool] = []  # what those who are running now want


def walk(size: int, step: int, title: str) -> Iterator[slice]:
    """The slices 0:step, step:2·step, … of ``size`` rows; says how far it is after 2, 4, 8, … seconds."""
    start, due = time.monotonic(), PATIENCE
    for low in range(0, size, step):
        done = min(low + step, size)
        yield slice(low, done)
        elapsed = time.monotonic() - start
        if elapsed > due and done < size:
            due = 2 * elapsed
            left = elapsed * (size - done) / done
            _say(f"{title}: {100 * done // size} %, about {left:.0f} s left")


@contextmanager
def announced(title: str) -> Iterator[None]:
    """Says ``title`` once if what happens within is not over after two seconds; for work without a measure."""
    if not sys.stderr.isatty():  # no thread for nobody
        yield
        return
    timer = threading.Timer(PATIENCE, _say, (f"{title} …",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def silence(wanted: bool) -> Iterator[None]:
    """Within this nothing is said, if that is wanted. For the whole process: a timer's thread has no context."""
    _silent.append(wanted)
    try:
        yield
    finally:
        _silent.remove(wanted)


def _say(line: str) -> None:
    if sys.stderr.isatty() and not any(_silent):
        print(line, file=sys.stderr, flush=True)
