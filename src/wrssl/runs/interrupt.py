"""Ctrl-C or SIGTERM during training: the current step is finished and stored first."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """The run was stopped by its user; the message says how to go on.

    Args:
        message: one sentence.
        number: of the signal.
    """

    def __init__(self, message: str = "Stopped.", number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = int(number)

    @property
    def exit_code(self) -> int:
        """What a program ends with by convention: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + self.number


def stop_now(number: int, frame: FrameType | None) -> None:
    """A handler: end by an exception, as Ctrl-C does."""
    raise Interrupted(number=number)


@contextmanager
def termination() -> Iterator[None]:
    """Within this SIGTERM raises ``Interrupted``, so that files are closed and a message is printed."""
    with ExitStack() as undo:
        if _in_main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            _handle(undo, signal.SIGTERM, stop_now)
        yield


@contextmanager
def patient_interrupt() -> Iterator[Callable[[], int]]:
    """Yields ``asked()``: the signal that asks the run to stop, 0 for none. A second signal stops at once.

    Only where the signal would end the program anyway: other handlers, and other threads, are left alone.
    """
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) > 1:
            at_once[number](number, frame)
        again = "Ctrl-C once more" if number == signal.SIGINT else "a second signal"
        print(f"\nStopping after this step; {again} stops at once.", file=sys.stderr, flush=True)

    at_once: dict[int, Any] = {}
    with ExitStack() as undo:
        if _in_main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                at_once[signal.SIGINT] = signal.default_int_handler
            if signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, stop_now):
                at_once[signal.SIGTERM] = stop_now
            for number in at_once:
                _handle(undo, number, note)
        yield lambda: asked[0] if asked else 0


def _in_main_thread() -> bool:
    """Python lets only the main thread have handlers."""
    return threading.current_thread() is threading.main_thread()


def _handle(undo: ExitStack, number: int, handler: Callable[[int, FrameType | None], Any]) -> None:
    undo.callback(signal.signal, number, signal.signal(number, handler))
