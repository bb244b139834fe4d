"""Folders of images or texts become the parts of a scenario: checked, read, and some labels held out for validation."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wrssl.data.augment import augmentation_for
from wrssl.data.convert import LABELED, POOL, TEST, VALIDATION
from wrssl.data.images.cache import Part, Work, cache_folder, read_part
from wrssl.data.images.decode import Bytes, Unreadable, all_gray, check_channels, to_gray
from wrssl.data.images.files import (
    AnyPath,
    Folder,
    ImageFile,
    Skipped,
    check_folders,
    class_of,
    kind_of_folder,
    printable,
    read_text,
    scan_classes,
    scan_pool,
)
from wrssl.data.images.holdout import about_held, check_share, groups, hold_out
from wrssl.data.images.reader import MAX_PIXELS, ImageReader, choose_jobs, make_reader
from wrssl.data.items import TEXT, Content, Embed, Items, Unread
from wrssl.data.scenario import Origin
from wrssl.data.streams import check_seed
from wrssl.errors import DataError

# Put before the names of skipped files; a member of the pool has the same name as in the verdicts.
_PREFIXES = {LABELED: "labeled:", POOL: "", VALIDATION: "validation:", TEST: "test:"}
Pair: TypeAlias = tuple[Bytes, npt.NDArray[np.str_]]

GRAY = "All labeled images are gray, so all images are used with one channel; pass channels=3 to keep colors."
_SHOWN = 3


@dataclass(frozen=True)
class FolderOptions:
    """The arguments of ``Scenario.from_folders``, which explains them; ``find_folders`` checks them."""

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
class Folders(Unread):
    """The files of all folders, found and checked; none is read yet.

    Attributes:
        options: the arguments.
        paths: of the folders, absolute, by part.
        folders: what is in them, by part.
        kind: ``"image"`` or ``"text"``.
        share: of the labels that are held out for validation; None for the default rule.
        held: whether labels may be held out, as no validation folder was given.
        work: threads, cache and bar of decoding.
    """

    options: FolderOptions
    paths: dict[str, Path]
    folders: dict[str, Folder]
    kind: str
    share: float | None
    held: bool
    work: Work

    @property
    def name(self) -> str:  # type: ignore[override]  # an attribute that is computed
        """For reports."""
        return f"own {self.kind}s"

    @property
    def augment(self) -> str | None:  # type: ignore[override]
        """As the user asked."""
        return self.options.augment

    @property
    def cache_dir(self) -> AnyPath | bool | None:  # type: ignore[override]
        """As the user asked."""
        return self.options.cache_dir

    @property
    def jobs(self) -> int | None:  # type: ignore[override]
        """As the user asked."""
        return self.options.jobs

    def labeled_items(self) -> list[str]:
        """The labeled files."""
        return [file.path for file in self.folders[LABELED].files]

    def as_pixels(self) -> Content:
        """Every image decoded and stretched to one size."""
        options = self.options
        if self.kind == TEXT:
            raise DataError("These folders hold texts, and a network needs numbers; name an embedder, such as minilm.")
        reader = make_reader(options.image_size, options.channels or 3, options.max_pixels)
        parts = {LABELED: self._decoded(LABELED, reader)}
        x, y = _pair(self._complete(parts[LABELED]))
        notes = contradictions(x, y, parts[LABELED].files)
        if options.channels is None and all_gray(x):
            reader, x = replace(reader, channels=1), to_gray(x)
            parts[LABELED] = parts[LABELED]._replace(rows=x)
            notes.append(GRAY)
        for part in (POOL, VALIDATION, TEST):
            if part in self.folders:
                parts[part] = self._decoded(part, reader)
        return self._content(parts, notes, reader)

    def embedded(self, embed: Embed) -> Content:
        """Every file as a row of an embedding."""
        parts = {}
        for part in (LABELED, POOL, VALIDATION, TEST):
            if part in self.folders:
                parts[part] = self._embedded(part, embed)
                if part == LABELED:
                    self._complete(parts[part])
        return self._content(parts, contradictions(*_pair(parts[LABELED]), parts[LABELED].files), None)

    def _decoded(self, part: str, reader: ImageReader) -> Part:
        folder = self.folders[part]
        return self._some(part, read_part(folder.files, folder.path, reader, f"Reading {part} images", self.work))

    def _embedded(self, part: str, embed: Embed) -> Part:
        files, items, skipped = self.folders[part].files, list[str](), list[Skipped]()
        if self.kind == TEXT:
            files, items, skipped = read_texts(files)
        else:
            items = [file.path for file in files]
        found = embed(items, part)
        kept = [number for number, good in enumerate(found.readable.tolist()) if good]
        skipped += [(printable(files[number].name), reason) for number, reason in found.reasons.items()]
        first, *views = found.rows
        made_of = [items[number] for number in kept]
        return self._some(
            part, Part(first, [files[number] for number in kept], skipped, found.trouble, made_of, tuple(views))
        )

    def _some(self, part: str, found: Part) -> Part:
        """The part itself; a ``DataError`` where not a single file can be read."""
        if not found.files:
            raise DataError(
                f"No {self.kind} in the {part} folder {printable(str(self.folders[part].path))} can be read "
                f"({_first(found)}); put good ones there."
            )
        return found

    def _complete(self, labeled: Part) -> Part:
        """The labeled part itself; a ``DataError`` where a class has lost all of its files."""
        classes, read = ({class_of(file) for file in files} for files in (self.folders[LABELED].files, labeled.files))
        if missing := sorted(classes - read):
            raise DataError(
                f"No {self.kind} of the class {missing[0]!r} can be read ({_first(labeled)}); put good {self.kind}s "
                "there."
            )
        return labeled

    def _content(self, parts: dict[str, Part], notes: list[str], reader: ImageReader | None) -> Content:
        """Hold out labels for validation, and say what is odd."""
        x, y = _pair(parts[LABELED])
        pairs = {part: _pair(parts[part]) for part in (VALIDATION, TEST) if part in parts}
        chosen = np.zeros(len(x), dtype=np.bool_)
        if self.held:
            chosen, different = hold_out(x, y, self.share, self.options.seed)
            notes += about_held(chosen, different, self.share, self.kind)
            if chosen.any():
                pairs[VALIDATION] = x[chosen], y[chosen]
        skipped = [
            (_PREFIXES[part] + name, reason)
            for part in _PREFIXES
            if part in parts
            for name, reason in sorted(self.folders[part].skipped + parts[part].skipped)
        ]
        trouble = next((part.trouble for part in parts.values() if part.trouble), None)
        notes += about_skipped(skipped) + about_cache(trouble, self.work.cache)
        known_views = [np.concatenate([view[~chosen], view[chosen]]) for view in parts[LABELED].views]
        if VALIDATION in parts:
            others = parts[VALIDATION].views
            known_views = [np.concatenate(both) for both in zip(known_views, others, strict=True)]
        return Content(
            (x[~chosen], y[~chosen]),
            parts[POOL].rows,
            pairs.get(VALIDATION),
            pairs.get(TEST),
            [printable(file.name) for file in parts[POOL].files],
            Origin(folders=self._arguments(reader), reader=reader, skipped=skipped, notes=notes),
            Items(
                self.kind,
                [item for item, held in zip(_items(parts[LABELED]), chosen.tolist(), strict=True) if not held],
                _items(parts[POOL]),
            ),
            parts[POOL].views,
            known_views,
        )

    def _arguments(self, reader: ImageReader | None) -> dict[str, Any]:
        """Those that give the same scenario again: plain values, absolute paths."""
        options, paths, size = self.options, self.paths, self.options.image_size
        return {
            "labeled": str(paths[LABELED]),
            "unlabeled": str(paths[POOL]),
            "validation": self.share if self.held else str(paths[VALIDATION]),
            "image_size": list(reader.size) if reader is not None else size if isinstance(size, int) else list(size),
            "test": str(paths[TEST]) if TEST in paths else None,
            "channels": options.channels,
            "seed": options.seed,
            "cache_dir": str(self.work.cache)
            if isinstance(options.cache_dir, (str, os.PathLike))
            else options.cache_dir,
            "max_pixels": options.max_pixels,
            "augment": options.augment,
        }


def find_folders(options: FolderOptions) -> Folders:
    """Check the options and the folders, and find the files; nothing is read."""
    options = replace(options, channels=check_channels(options.channels), seed=check_seed(options.seed))
    # For their checks: nothing is read before all options are good.
    make_reader(options.image_size, options.channels or 3, options.max_pixels)
    augmentation_for(options.augment or "none", (options.channels or 3, 1, 1), (0.0, 1.0))
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
    kind = kind_of_folder(paths[LABELED])
    folders = {
        LABELED: scan_classes(paths[LABELED], LABELED, kind=kind),
        POOL: scan_pool(paths[POOL], POOL, kind),
    }
    classes = {class_of(file) for file in folders[LABELED].files}
    for part in (VALIDATION, TEST):
        if part in paths:
            folders[part] = scan_classes(paths[part], part, classes, kind)
    return Folders(options, paths, folders, kind, share, held, work)


def _pair(part: Part) -> Pair:
    return part.rows, np.array([class_of(file) for file in part.files])


def _items(part: Part) -> Sequence[str]:
    return part.items or [file.path for file in part.files]


def _first(part: Part) -> str:
    name, reason = part.skipped[0]
    return f"first: {name}, {reason}"


def read_texts(files: list[ImageFile]) -> tuple[list[ImageFile], list[str], list[Skipped]]:
    """The files that hold a text in UTF-8, their texts, and the others with their reasons."""
    kept, texts, skipped = list[ImageFile](), list[str](), list[Skipped]()
    for file in files:
        text = read_text(file.path)
        if isinstance(text, Unreadable):
            skipped.append((printable(file.name), text.reason))
        else:
            kept.append(file)
            texts.append(text)
    return kept, texts, skipped


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
