"""Two folders of image files become the parts of a scenario: checked, read, and some labels held out for validation."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from wrssl.data.checks import row_hashes
from wrssl.data.convert import LABELED, POOL, TEST, VALIDATION, to_rows
from wrssl.data.images.cache import Part, Work, cache_folder, read_part
from wrssl.data.images.decode import Bytes, all_gray, check_channels, to_gray
from wrssl.data.images.files import (
    AnyPath,
    Folder,
    ImageFile,
    Skipped,
    check_folders,
    class_of,
    printable,
    scan_classes,
    scan_pool,
)
from wrssl.data.images.reader import MAX_PIXELS, ImageReader, choose_jobs, make_reader
from wrssl.data.scenario import Origin
from wrssl.data.streams import check_seed, numpy_stream
from wrssl.errors import DataError, OptionError

# Put before the names of skipped files; a member of the pool has the same name as in the verdicts.
_PREFIXES = {LABELED: "labeled:", POOL: "", VALIDATION: "validation:", TEST: "test:"}
Pair: TypeAlias = tuple[Bytes, npt.NDArray[np.str_]]
Mask: TypeAlias = npt.NDArray[np.bool_]

SHARE = 0.25
LEAST_HELD = 60  # in all: half of them choose between models (the fallback of a run), and fewer than 30 could not
LEAST_LEFT = 10  # of each class
GRAY = "All labeled images are gray, so all images are used with one channel; pass channels=3 to keep colors."
_SHOWN = 3


@dataclass(frozen=True)
class FolderOptions:
    """The arguments of ``Scenario.from_folders``, which explains them; ``read_folders`` checks them."""

    labeled: AnyPath
    unlabeled: AnyPath
    validation: AnyPath | float | None = None
    image_size: int | tuple[int, int] = 32
    test: AnyPath | None = None
    channels: int | None = None
    seed: int = 0
    augment: str | None = None
    cache_dir: AnyPath | bool | None = None
    jobs: int | None = None
    progress: bool | None = None
    max_pixels: int = MAX_PIXELS


@dataclass(frozen=True)
class FolderData:
    """What was found.

    Attributes:
        labeled: rows and names of classes.
        pool: rows, memory-mapped where there is a cache.
        ids: the relative path of each pool row.
        validation: as ``labeled``, or None.
        test: as ``labeled``, or None.
        origin: how new files are read in the same way, files that were not used, sentences for the user, and the
            arguments that give the same scenario again (plain values, absolute paths).
    """

    labeled: Pair
    pool: Bytes
    ids: list[str]
    validation: Pair | None
    test: Pair | None
    origin: Origin


def read_folders(options: FolderOptions) -> FolderData:
    """Check the options, find the files, read them, hold out labels for validation."""
    channels, seed = check_channels(options.channels), check_seed(options.seed)
    reader = make_reader(options.image_size, channels or 3, options.max_pixels)
    given = {LABELED: options.labeled, POOL: options.unlabeled}
    share: float | None = None
    held = not isinstance(options.validation, (str, os.PathLike))
    if isinstance(options.validation, (str, os.PathLike)):
        given[VALIDATION] = options.validation
    elif options.validation is not None:
        share = check_share(options.validation)
    if options.test is not None:
        given[TEST] = options.test
    paths = check_folders(given)
    work = Work(cache_folder(options.cache_dir), choose_jobs(options.jobs), options.progress)

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
    if channels is None and all_gray(x):
        reader, x = replace(reader, channels=1), to_gray(x)
        notes.append(GRAY)
    for part in (POOL, VALIDATION, TEST):
        if part in folders:
            parts[part] = _read(part, folders, reader, work)

    pairs = {part: _pair(parts[part]) for part in (VALIDATION, TEST) if part in parts}
    if held:
        chosen, different = hold_out(x, y, share, seed)
        notes += about_held(chosen, different, share)
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
    notes += about_skipped(skipped) + about_cache(trouble, work.cache)
    arguments = {
        "labeled": str(paths[LABELED]),
        "unlabeled": str(paths[POOL]),
        "validation": share if held else str(paths[VALIDATION]),
        "image_size": list(reader.size),
        "test": str(paths[TEST]) if TEST in paths else None,
        "channels": channels,
        "seed": seed,
        "cache_dir": str(work.cache) if isinstance(options.cache_dir, (str, os.PathLike)) else options.cache_dir,
        "max_pixels": reader.max_pixels,
        "augment": options.augment,
    }
    return FolderData(
        (x, y),
        parts[POOL].rows,
        [printable(file.name) for file in parts[POOL].files],
        pairs.get(VALIDATION),
        pairs.get(TEST),
        Origin(folders=arguments, reader=reader, skipped=skipped, notes=notes),
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


def groups(rows: Bytes) -> npt.NDArray[np.int64]:
    """A number per row, the same for equal rows (and, with odds of one to 10¹⁹ per pair, for others)."""
    _, place = np.unique(row_hashes(to_rows(rows, LABELED)), return_inverse=True)
    return np.asarray(place.reshape(-1), dtype=np.int64)


def contradictions(rows: Bytes, labels: npt.NDArray[np.str_], files: list[ImageFile]) -> list[str]:
    """A note where one image is in the folders of two classes, which happens when folders are sorted by hand."""
    first: dict[int, int] = {}
    pairs = []
    for row, group in enumerate(groups(rows).tolist()):
        other = first.setdefault(group, row)
        if labels[other] != labels[row]:
            pairs.append((files[other].name, files[row].name))
    if not pairs:
        return []
    one, two = map(printable, pairs[0])
    many = f"{len(pairs)} labeled images are" if len(pairs) > 1 else "A labeled image is"
    return [f"{many} in the folders of two classes (first: {one} and {two}); remove it from the wrong one."]


def automatic(sizes: list[int]) -> list[int]:
    """How many labels of each class are held out by default; all zero for "none".

    A quarter of each class, if that makes 60 labels, at least one of each class, and leaves at least 10 in every class.
    Held-out labels choose between the models of the default (weighted, plain, supervised). A handful of them would
    choose at random, and training needs them more: with fewer the weights are found by cross-fitting, on all labels.
    """
    held = [int(SHARE * size) for size in sizes]
    each = all(number >= 1 and size - number >= LEAST_LEFT for size, number in zip(sizes, held, strict=True))
    return held if each and sum(held) >= LEAST_HELD else [0] * len(sizes)


def by_share(sizes: list[int], share: float) -> list[int]:
    """The share of each class, rounded; at least one label of a class that has two, and never its last one."""
    return [max(0, min(max(1, round(share * size)), size - 1)) if share else 0 for size in sizes]


def check_share(share: object) -> float:
    """The share as a float in [0, 1), or an ``OptionError``."""
    if isinstance(share, (int, float, np.integer, np.floating)) and not isinstance(share, bool) and 0 <= share < 1:
        return float(share)
    raise OptionError(
        f"validation must be a folder, a share of the labels from 0 (none) to below 1, or None, not {share!r}."
    )


def hold_out(rows: Bytes, labels: npt.NDArray[np.str_], share: float | None, seed: int) -> tuple[Mask, dict[str, int]]:
    """Choose the labeled rows that become validation rows.

    Only rows without an exact copy among the labels are held out: the copy would be trained on. What is held out of one
    class does not depend on the others.

    Args:
        rows: labeled images.
        labels: their classes.
        share: of each class; None for the default rule, 0 for none.
        seed: of the choice.

    Returns:
        True for each row that is held out, and the number of rows without a copy in each class.
    """
    held = np.zeros(len(rows), dtype=np.bool_)
    group = groups(rows)
    single = np.bincount(group)[group] == 1
    members = {label: np.flatnonzero((labels == label) & single) for label in np.unique(labels).tolist()}
    sizes = [len(member) for member in members.values()]
    numbers = automatic(sizes) if share is None else by_share(sizes, share)
    for (label, member), number in zip(members.items(), numbers, strict=True):
        held[numpy_stream(seed, f"held out of {label}").permutation(member)[:number]] = True
    return held, dict(zip(members, sizes, strict=True))


def about_held(held: npt.NDArray[np.bool_], different: dict[str, int], share: float | None) -> list[str]:
    """What was held out for validation.

    Args:
        held: True for each labeled row that is held out.
        different: the number of labeled rows of each class that have no copy.
        share: what the user asked for; None for the default rule.
    """
    if share == 0:
        return []
    if held.any():
        other = ", or validation=0 to train on all of them" if share is None else ""
        return [
            f"{held.sum()} of the {len(held)} labeled images are held out for validation, chosen by the seed within "
            f"each class; give a validation folder to train on more{other}."
        ]
    number = sum(different.values())
    needed = f"{2 * len(different)} of them" if share else f"{int(LEAST_HELD / SHARE)} of them"
    return [
        f"No labeled image is held out for validation, as there are too few different ones ({number}): "
        f"the weights are found by cross-fitting, and nothing chooses between models; {needed}, evenly spread over the "
        "classes, or a validation folder would change that, and wrssl audit says how good the model is."
    ]


def about_skipped(skipped: list[Skipped]) -> list[str]:
    """How many files were not used, and the most frequent reasons."""
    if not skipped:
        return []
    count = Counter(reason.split(" (")[0] for _, reason in skipped).most_common()
    shown = ", ".join(f"{reason}: {number}" for reason, number in count[:_SHOWN])
    more = ", …" if len(count) > _SHOWN else ""
    files = "1 file was" if len(skipped) == 1 else f"{len(skipped)} files were"
    return [f"{files} skipped ({shown}{more}); skipped.csv has names and reasons."]


def about_cache(trouble: str | None, cache: Path | None) -> list[str]:
    """Why the images will be decoded again next time."""
    if trouble is None:
        return []
    return [
        f"The decoded images are in memory only, as {printable(str(cache))} cannot be written ({trouble}); name "
        "another cache_dir to be quicker next time."
    ]
