"""The parts of a scenario from folders of image files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wrssl.api import DataError
from wrssl.data.images import remarks
from wrssl.data.images.cache import Part, Work, cache_folder, read_part
from wrssl.data.images.copies import contradictions
from wrssl.data.images.decode import Bytes
from wrssl.data.images.grey import all_grey, check_channels, to_grey
from wrssl.data.images.holdout import check_share, hold_out
from wrssl.data.images.layout import Folder, check_folders, class_of, scan_classes, scan_pool
from wrssl.data.images.parallel import choose_jobs
from wrssl.data.images.reader import ImageReader, make_reader
from wrssl.data.images.scan import Skipped, printable
from wrssl.data.streams import check_seed

LABELED, POOL, VALIDATION, TEST = "labelled", "unlabelled", "validation", "test"
# What stands before the names of skipped files; a member of the pool has the name that it has in the verdicts.
_PREFIXES = {LABELED: "labeled:", POOL: "", VALIDATION: "validation:", TEST: "test:"}
Pair: TypeAlias = tuple[Bytes, npt.NDArray[np.str_]]


@dataclass(frozen=True)
class FolderData:
    """What was found.

    Attributes:
        labeled: rows and names of classes.
        pool: rows, memory-mapped where there is a cache.
        ids: the relative path of each pool row.
        validation: as ``labeled``, or None.
        test: as ``labeled``, or None.
        reader: how new files are read in the same way.
        skipped: names and reasons of files that were not used.
        notes: sentences for the user.
        arguments: what gives the same scenario again; plain values, absolute paths.
    """

    labeled: Pair
    pool: Bytes
    ids: list[str]
    validation: Pair | None
    test: Pair | None
    reader: ImageReader
    skipped: list[Skipped]
    notes: list[str]
    arguments: dict[str, Any]


def read_folders(
    labeled: Any,
    unlabeled: Any,
    validation: Any,
    image_size: Any,
    test: Any,
    channels: Any,
    seed: Any,
    cache_dir: Any,
    jobs: int | None,
    progress: bool | None,
    max_pixels: Any,
) -> FolderData:
    """Check, find, read, hold out; the arguments are those of ``Scenario.from_folders``."""
    channels, seed = check_channels(channels), check_seed(seed)
    reader = make_reader(image_size, channels or 3, max_pixels)
    given = {LABELED: labeled, POOL: unlabeled, VALIDATION: validation, TEST: test}
    held = not isinstance(validation, (str, os.PathLike))
    share = None if not held or validation is None else check_share(validation)
    absent = {VALIDATION} if held else set()
    absent |= {TEST} if test is None else set()
    paths = check_folders({part: value for part, value in given.items() if part not in absent})
    work = Work(cache_folder(cache_dir), choose_jobs(jobs), progress)

    folders = {LABELED: scan_classes(paths[LABELED], LABELED), POOL: scan_pool(paths[POOL], POOL)}
    classes = {class_of(file) for file in folders[LABELED].files}
    for part in (VALIDATION, TEST):
        if part in paths:
            folders[part] = scan_classes(paths[part], part, classes)

    parts = {LABELED: _read(LABELED, folders, reader, work)}
    x, y = _pair(parts[LABELED])
    if missing := sorted(classes - set(y.tolist())):
        raise DataError(
            f"No image of the class {missing[0]!r} can be read ({_first(parts[LABELED])}); put good images there."
        )
    notes = contradictions(x, y, parts[LABELED].files)
    if channels is None and all_grey(x):
        reader, x = replace(reader, channels=1), to_grey(x)
        notes.append(remarks.GREY)
    for part in (POOL, VALIDATION, TEST):
        if part in folders:
            parts[part] = _read(part, folders, reader, work)

    pairs = {part: _pair(parts[part]) for part in (VALIDATION, TEST) if part in parts}
    if held:
        chosen, different = hold_out(x, y, share, seed)
        notes += remarks.about_held(chosen, different, share)
        if chosen.any():
            pairs[VALIDATION] = x[chosen], y[chosen]
            x, y = x[~chosen], y[~chosen]
    skipped = [
        (_PREFIXES[part] + name, reason)
        for part in _PREFIXES
        if part in parts
        for name, reason in sorted(folders[part].skipped + parts[part].skipped)
    ]
    trouble = next((part.trouble for part in parts.values() if part.trouble), None)
    notes += remarks.about_skipped(skipped) + remarks.about_cache(trouble, work.cache)
    arguments = {
        "labeled": str(paths[LABELED]),
        "unlabeled": str(paths[POOL]),
        "validation": share if held else str(paths[VALIDATION]),
        "image_size": list(reader.size),
        "test": None if test is None else str(paths[TEST]),
        "channels": channels,
        "seed": seed,
        "cache_dir": str(work.cache) if isinstance(cache_dir, (str, os.PathLike)) else cache_dir,
        "max_pixels": reader.max_pixels,
    }
    ids = [printable(file.name) for file in parts[POOL].files]
    return FolderData(
        (x, y), parts[POOL].rows, ids, pairs.get(VALIDATION), pairs.get(TEST), reader, skipped, notes, arguments
    )


def _read(part: str, folders: dict[str, Folder], reader: ImageReader, work: Work) -> Part:
    """The rows of one folder; a ``DataError`` where not a single file can be read."""
    folder = folders[part]
    found = read_part(folder.files, folder.path, reader, f"Reading {part} images", work)
    if not found.files:
        raise DataError(
            f"No image in the {part} folder {printable(str(folder.path))} can be read ({_first(found)}); put good ones "
            "there."
        )
    return found


def _pair(part: Part) -> Pair:
    return part.rows, np.array([class_of(file) for file in part.files])


def _first(part: Part) -> str:
    name, reason = part.skipped[0]
    return f"first: {name}, {reason}"
