"""Ctrl-C during training: the step that is under way is finished and stored first."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """The run was stopped by its user; the message says how to go on."""


@contextmanager
def patient_interrupt() -> Iterator[Callable[[], bool]]:
    """Yields ``asked()``: whether somebody wants the run to stop. A second Ctrl-C does not wait any more.

    Only where Ctrl-C would raise KeyboardInterrupt anyway: other handlers, and other threads, are left alone.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    asked = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()
        print("\nStopping after this step; Ctrl-C once more stops at once.", file=sys.stderr, flush=True)

    signal.signal(signal.SIGINT, note)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
