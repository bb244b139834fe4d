"""How image files are read: all that the pixels depend on, in a form that can be stored beside a model.

Several threads decode; results come in order, with a bounded number under way. Threads and not processes: Pillow
decodes and resizes without the interpreter's lock, and processes would need a main module that can be imported again,
which a user's script or notebook often is not.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from wrssl.data.images.decode import Bytes, Unreadable, decode, formats
from wrssl.data.images.files import Skipped, printable
from wrssl.errors import DataError, OptionError
from wrssl.progress import bar

FORMAT = 1  # goes up whenever the same file would give other pixels
MAX_PIXELS = 100_000_000
_BATCH_BYTES = 1 << 17
_MOST = 16  # threads, unless more are asked for; the disk is slower than that
T = TypeVar("T")
R = TypeVar("R")
PathKind = TypeVar("PathKind", str, Path)


@dataclass(frozen=True)
class ImageReader:
    """Turns image files into rows; equal readers make equal rows of equal files.

    Attributes:
        size: height and width.
        channels: 1 for gray, 3 for RGB.
        max_pixels: files with more are skipped, by their header, before anything is decoded.
    """

    size: tuple[int, int]
    channels: int
    max_pixels: int = MAX_PIXELS

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a row: channels, height, width."""
        return self.channels, *self.size

    def to_json(self) -> dict[str, Any]:
        """Plain values that ``from_json`` takes."""
        return {"format": FORMAT, **asdict(self), "size": list(self.size)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ImageReader:
        """The reader that ``to_json`` described; ``DataError`` for one that this version cannot represent."""
        try:
            if value["format"] != FORMAT:
                raise DataError(
                    f"The images were read by rules number {value['format']} and this version of wrssl has number "
                    f"{FORMAT}; use the version that made the model, or train again."
                )
            height, width = (int(side) for side in value["size"])
            return cls((height, width), int(value["channels"]), int(value["max_pixels"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{value!r} does not describe how images were read; take what the run's config.json says."
            ) from error

    def read(
        self, paths: Sequence[PathKind], progress: bool | None = None, *, jobs: int | None = None
    ) -> tuple[Bytes, list[PathKind], list[Skipped]]:
        """Read these files into memory.

        Args:
            paths: the files.
            progress: show a bar; default after two seconds where standard error is a terminal.
            jobs: number of threads; default as many as there are processors.

        Returns:
            Rows ``(N, C, H, W)``, the N paths that could be read, in order, and the others with their reasons.
        """
        rows, reasons = self.read_each([os.fspath(path) for path in paths], "Reading images", progress, jobs=jobs)
        kept = [path for number, path in enumerate(paths) if number not in reasons]
        return rows, kept, [(printable(os.fspath(paths[number])), reason) for number, reason in reasons.items()]

    def read_each(
        self, paths: Sequence[str], title: str, progress: bool | None = None, *, jobs: int | None = None
    ) -> tuple[Bytes, dict[int, str]]:
        """Rows ``(N, C, H, W)`` of the N files that can be read, in order; by number, why the others cannot."""
        rows, reasons = np.empty((len(paths), *self.shape), dtype=np.uint8), dict[int, str]()
        with quiet(), closing(self.outcomes(paths, title, progress, choose_jobs(jobs))) as outcomes:
            for number, outcome in enumerate(outcomes):
                if isinstance(outcome, Unreadable):
                    reasons[number] = outcome.reason
                else:
                    rows[number - len(reasons)] = outcome
        return rows[: len(paths) - len(reasons)], reasons

    def outcomes(
        self, paths: Sequence[str], title: str, progress: bool | None, jobs: int
    ) -> Generator[Bytes | Unreadable, None, None]:
        """A row or an ``Unreadable`` per file, in order; run it under ``quiet``."""
        formats()  # before there are threads

        def one(path: str) -> Bytes | Unreadable:
            return decode(path, self.size, self.channels, self.max_pixels)

        batch = min(32, max(1, _BATCH_BYTES // int(np.prod(self.shape))))
        with bar(title, len(paths), show=progress) as tick, closing(in_order(one, paths, jobs, batch)) as found:
            for outcome in found:
                tick()
                yield outcome


def make_reader(image_size: int | tuple[int, int], channels: int, max_pixels: int) -> ImageReader:
    """A reader for what the user asked for, or an ``OptionError``.

    Args:
        image_size: a number for squares, or height and width.
        channels: 1 or 3.
        max_pixels: the limit.
    """
    sides = tuple(image_size) if isinstance(image_size, (tuple, list)) else (image_size, image_size)
    if len(sides) != 2 or not all(_whole(side) for side in sides):
        raise OptionError(
            f"image_size must be a number of pixels, for example 32, or a pair (height, width), not {image_size!r}."
        )
    if not _whole(max_pixels):
        raise OptionError(f"max_pixels must be a whole number of at least 1, not {max_pixels!r}.")
    return ImageReader((int(sides[0]), int(sides[1])), channels, int(max_pixels))


def _whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 1


def choose_jobs(asked: int | None) -> int:
    """The number of threads: as asked, else the processors that this process may use."""
    if asked is None:
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(usable, _MOST)
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise OptionError(f"jobs must be a whole number of at least 1, not {asked!r}; leave it out to have it chosen.")
    return asked


def in_order(function: Callable[[T], R], items: Sequence[T], jobs: int, batch: int) -> Generator[R, None, None]:
    """``map(function, items)`` by ``jobs`` threads, ``batch`` items at a time to keep the overhead small."""
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
        finally:  # a caller that stops early does not wait for the rest
            for future in waiting:
                future.cancel()


_quiet_lock = threading.Lock()
_quiet_users = 0
_quiet_filters: warnings.catch_warnings[None] | None = None


@contextmanager
def quiet() -> Iterator[None]:
    """Within this no warning of Pillow (about strange metadata, say) is shown or becomes an error, in any thread.

    Entered by the thread that waits and not by workers: all threads share the filters. Of several such contexts at once
    the first sets them and the last restores them.
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
