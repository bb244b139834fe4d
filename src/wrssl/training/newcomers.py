"""Image files that a run has never seen, read as its own were and judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wrssl.api import DataError
from wrssl.data import ImageReader, image_files, printable
from wrssl.training.result import Result

if TYPE_CHECKING:
    import pandas as pd


def judge_files(result: Result, paths: Sequence[Path]) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """The table of ``Result.judge`` with paths as ids, and the files that could not be read with the reasons."""
    stored = result.config.get("reader")
    if stored is None:
        raise DataError("This run was not trained on image files; use wrssl.load(RUN).judge(X) from Python.")
    files = [file for path in paths for file in image_files(path)]
    if not files:
        raise DataError("There is no image file in what was named; name image files, or folders that hold some.")
    pixels, kept, skipped = ImageReader.from_json(stored).read(files)
    if not len(kept):
        raise DataError(f"None of the {len(files)} files could be read as an image ({skipped[0][1]}); check them.")
    return result.judge(pixels, [printable(path.as_posix()) for path in kept]), skipped
