"""How image files are read: all that the pixels depend on, in a form that can be stored beside a model."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from wrssl.api import DataError, OptionError
from wrssl.data.images.decode import Bytes, Unreadable, decode, formats
from wrssl.data.images.parallel import choose_jobs, in_order, quiet
from wrssl.data.images.scan import Skipped, printable
from wrssl.data.images.waiting import counted

FORMAT = 1  # goes up whenever the same file would give other pixels
MAX_PIXELS = 100_000_000
_BATCH_BYTES = 1 << 17
AnyPath = TypeVar("AnyPath", str, Path)


@dataclass(frozen=True)
class ImageReader:
    """Turns image files into rows; equal readers make equal rows of equal files.

    Attributes:
        size: height and width.
        channels: 1 for grey, 3 for RGB.
        max_pixels: files with more are skipped; judged by the header, before anything is decoded.
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
        """The reader that ``to_json`` described; ``DataError`` for one that this version cannot stand for."""
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
        self, paths: Sequence[AnyPath], progress: bool | None = None, *, jobs: int | None = None
    ) -> tuple[Bytes, list[AnyPath], list[Skipped]]:
        """Read these files into memory.

        Args:
            paths: the files.
            progress: show a bar; default after two seconds where standard error is a terminal.
            jobs: number of threads; default as many as there are processors.

        Returns:
            Rows ``(N, C, H, W)``, the N paths that could be read, in order, and the others with their reasons.
        """
        rows = np.empty((len(paths), *self.shape), dtype=np.uint8)
        kept: list[AnyPath] = []
        skipped: list[Skipped] = []
        places = [os.fspath(path) for path in paths]
        with quiet(), closing(self.outcomes(places, "Reading images", progress, choose_jobs(jobs))) as outcomes:
            for path, outcome in zip(paths, outcomes, strict=True):
                if isinstance(outcome, Unreadable):
                    skipped.append((printable(os.fspath(path)), outcome.reason))
                else:
                    rows[len(kept)] = outcome
                    kept.append(path)
        return rows[: len(kept)], kept, skipped

    def outcomes(
        self, paths: Sequence[str], title: str, progress: bool | None, jobs: int
    ) -> Generator[Bytes | Unreadable, None, None]:
        """A row or an ``Unreadable`` per file, in order; to be run under ``quiet``."""
        formats()  # before there are threads

        def one(path: str) -> Bytes | Unreadable:
            return decode(path, self.size, self.channels, self.max_pixels)

        batch = min(32, max(1, _BATCH_BYTES // int(np.prod(self.shape))))
        yield from counted(in_order(one, paths, jobs, batch), title, len(paths), progress)


def make_reader(image_size: Any, channels: int, max_pixels: Any) -> ImageReader:
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


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 1
