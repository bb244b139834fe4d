"""A scenario: few labeled rows, a pool that may contain anything, and what is needed to judge the result."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset

from wrssl.data.augment import augmentation_for, default_kind, value_range
from wrssl.data.checks import check_finite, check_overlap, check_shapes, check_truth, chunks, constant_features
from wrssl.data.convert import (
    LABELED,
    POOL,
    TEST,
    VALIDATION,
    Pairs,
    Rows,
    apply_classes,
    fit_classes,
    read_dataset,
    to_rows,
)
from wrssl.data.frames import encode_parts
from wrssl.data.inputs import prepare
from wrssl.data.item_lists import ImageArrays, ItemLists
from wrssl.data.items import Content, Embedding, Unread, are_items
from wrssl.errors import DataError, OptionError

if TYPE_CHECKING:
    from wrssl.data.images import ImageReader

_NOISE = 0.15
_SHOWN = 5
TABLE, EMBEDDING = "table", "embedding"  # what rows (N, F) may be
ROW_NOISE, ROW_EPSILON = 0.15, 0.15  # σ and ε of rows of an embedding, in units of their spread


@dataclass(frozen=True)
class Origin:
    """Where the rows of a scenario come from, as far as the function that read them knows.

    Attributes:
        recipe: the arguments of ``load_scenario``.
        folders: the arguments of ``Scenario.from_folders``.
        reader: how image files became rows.
        skipped: name and reason of each file that was not used.
        notes: sentences about the reading.
    """

    recipe: dict[str, Any] | None = None
    folders: dict[str, Any] | None = None
    reader: ImageReader | None = None
    skipped: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()


class Scenario:
    """Labeled rows, an unlabeled pool, and optionally validation, test and the truth about the pool.

    Inputs are arrays, tensors, nested lists or map-style Datasets (items ``(x, y)``; in the pool ``x`` or
    ``(x, anything)``): images ``(N, C, H, W)`` or tables ``(N, F)``. Memory of ``uint8``, ``float32`` and ``float16``
    is shared and not copied, so a memory-mapped pool stays on disk; every other number type becomes ``float32``. Data
    frames are encoded: numbers scaled, categories as 0/1 columns, missing cells marked (``data/frames``).
    Inputs may also be lists of texts or of paths of image files. They are read when they are first needed:
    ``wrssl.fit`` makes rows of them with an embedder, without one images are decoded to 32 × 32 pixels.
    All parts are checked (see ``data/checks.py``); what is odd but usable is listed in ``notes``.

    Args:
        labeled: ``(X, y)`` or a Dataset of pairs.
        unlabeled: the pool.
        validation: ``(X, y)``, a Dataset of pairs, or None.
        test: likewise.
        is_ood: one 0/1 per pool member, where the truth is known.
        name: shown in reports.
        noise: σ of the input noise that Π-Model and Mean Teacher add.
        augment: which random changes leave the class of an example alone, one of ``AUGMENTATIONS``; default ``"table"``
            for tables, ``"shapes"`` for images with one channel (moved, turned, sheared; never mirrored) and
            ``"signs"`` for others (colors too). ``"photos"`` may be mirrored as well; ``"none"`` changes nothing.
        vat_epsilon: radius of the adversarial step; default 0.5 for tables and 3·√(C·H·W / 784) for images, as
            the references' 3 on MNIST and 6 on CIFAR have the same ratio to the root of the number of pixels.
        overlap: ``"error"`` or ``"allow"``: what equal rows in two parts mean. Labeled rows inside the pool are
            common practice and always just a note.
        ids: a name per pool member; default the row numbers.
        rows: ``"embedding"`` where rows ``(N, F)`` are an embedding of yours: directions from their mean count, and
            noise is measured by their spread; ``"table"``, the default, where columns have meanings of their own.
        embedding: how an embedder made the rows, for functions that do this; implies ``rows="embedding"``.
        origin: where the rows come from, for functions that read them; fills ``recipe``, ``folders``, ``reader``,
            ``skipped`` and the first ``notes``.

    Attributes:
        labeled: inputs and int64 labels 0 … C−1.
        unlabeled: inputs of the pool.
        validation: as ``labeled``, or None.
        test: as ``labeled``, or None.
        classes: the original labels, sorted; ``classes[k]`` is what the label k stands for.
        num_classes: C.
        input_shape: shape of one row.
        notes: sentences about what is odd but usable.
        recipe: the arguments that ``load_scenario`` made it with, None for own data.
        folders: the arguments that ``from_folders`` made it with, None for other data.
        reader: how image files became rows, None for other data; ``reader.read(paths)`` reads more of them.
        skipped: name and reason of each file that was not used.
        encoder: how data frames became rows, None for other data.
        embedding: how items became rows (``Embedding``); None for pixels and tables.
        unread: the items behind the rows, which can be read in another way; None for arrays.

    ``_is_ood`` (bool tensor or None) is the truth. It is private: only ``wrssl.evaluate`` may read it, and a
    training object never sees it (the ``oracle`` weighting is the one declared exception).
    """

    # Known before anything is read.
    unread: Unread | None = None
    embedding: Embedding | None = None

    def __init__(
        self,
        labeled: Pairs,
        unlabeled: Rows,
        validation: Pairs | None = None,
        test: Pairs | None = None,
        is_ood: npt.ArrayLike | Tensor | None = None,
        *,
        name: str = "own data",
        noise: float | None = None,
        augment: str | None = None,
        vat_epsilon: float | None = None,
        overlap: str = "error",
        ids: Sequence[Any] | None = None,
        rows: str | None = None,
        embedding: Embedding | None = None,
        origin: Origin | None = None,
    ) -> None:
        if overlap not in ("error", "allow"):
            raise OptionError(f'overlap must be "error" or "allow", not {overlap!r}.')
        if rows not in (None, TABLE, EMBEDDING):
            raise OptionError(f'rows must be "{TABLE}" or "{EMBEDDING}", not {rows!r}.')
        if isinstance(labeled, (tuple, list)) and len(labeled) == 2 and are_items(labeled[0]):
            self.unread = ItemLists(labeled, unlabeled, validation, test, ids, is_ood, name, augment)
            return  # read when somebody asks for what is in it
        self.encoder, (labeled, unlabeled, validation, test) = encode_parts(labeled, unlabeled, validation, test)
        x, y = _pair(labeled, LABELED)
        others = {
            part: _pair(given, part) for part, given in ((VALIDATION, validation), (TEST, test)) if given is not None
        }
        x, pool, *more = one_precision([x, to_rows(unlabeled, POOL), *(values for values, _ in others.values())])
        parts = {LABELED: x, POOL: pool}
        check_shapes(parts)
        self.classes, codes = fit_classes(y, len(x))
        extra: dict[str, tuple[Tensor, Tensor]] = {}
        for (part, (_, labels)), values in zip(others.items(), more, strict=True):
            parts[part] = values
            check_shapes(parts)
            extra[part] = values, apply_classes(labels, len(values), self.classes, part)
        for part, values in parts.items():
            check_finite(part, values)

        self.name = name
        self.labeled = (x, codes)
        self.unlabeled = pool
        self.validation = extra.get(VALIDATION)
        self.test = extra.get(TEST)
        self.num_classes = len(self.classes)
        self.input_shape: tuple[int, ...] = tuple(x.shape[1:])
        if embedding is None and rows == EMBEDDING:
            embedding = Embedding("own rows", "", "The rows were given as an embedding.")
        if embedding is not None and len(self.input_shape) != 1:
            raise DataError(f"An embedding has rows (N, F), but these have shape {self.input_shape}; flatten them.")
        self.embedding = embedding
        pixels = math.prod(self.input_shape)
        usual, radius = _NOISE, 0.5 if len(self.input_shape) == 1 else 3.0 * math.sqrt(pixels / 784)
        if embedding is not None:
            usual, radius = ROW_NOISE * self.spread / math.sqrt(pixels), ROW_EPSILON * self.spread
        self.noise = _positive("noise", usual if noise is None else noise, zero=True)
        self.augment = default_kind(self.input_shape) if augment is None else augment
        self.augmentation = augmentation_for(self.augment, self.input_shape, value_range(x), usual)
        self.vat_epsilon = _positive("vat_epsilon", radius if vat_epsilon is None else vat_epsilon)
        self.ids: Sequence[Any] = range(len(pool)) if ids is None else ids
        if len(self.ids) != len(pool):
            raise DataError(f"There are {len(self.ids)} ids for {len(pool)} pool rows; give one id per pool row.")
        self._is_ood: Tensor | None = None if is_ood is None else check_truth(is_ood, len(pool))

        origin = origin or Origin()
        self.recipe, self.folders, self.reader = origin.recipe, origin.folders, origin.reader
        self.skipped = list(origin.skipped)
        self.notes = [*origin.notes, *self._remarks(), *check_overlap(parts, POOL, overlap == "allow", ids)]

    @classmethod
    def from_folders(
        cls,
        labeled: str | os.PathLike[str],
        unlabeled: str | os.PathLike[str],
        validation: str | os.PathLike[str] | float | None = None,
        image_size: int | tuple[int, int] = 32,
        *,
        test: str | os.PathLike[str] | None = None,
        channels: int | None = None,
        seed: int = 0,
        augment: str | None = None,
        cache_dir: str | os.PathLike[str] | bool | None = None,
        jobs: int | None = None,
        progress: bool | None = None,
        max_pixels: int = 100_000_000,
    ) -> Scenario:
        """A scenario from folders of image files.

        JPEG, PNG, WebP, TIFF and BMP files of every color mode and size are read as a viewer would show them. Folders
        that hold .txt files and no image are texts, one per file. The files are found and checked at once and read
        when they are needed: ``wrssl.fit`` makes rows of them with an embedder, without one images are stretched to one
        size. A file that cannot be read is left out and listed in ``skipped``, never an error. ``ids`` are the paths
        relative to the pool folder, sorted. Equal items in two parts are notes only, as copies are common among
        collected pictures; see the guide docs/guides/own-images.md.

        Args:
            labeled: a folder with one sub-folder per class; images may be at any depth below it.
            unlabeled: a folder with images at any depth: the pool.
            validation: a folder like ``labeled``; or the share of the labels of each class that is held out, 0 for
                none; None holds out a quarter where that makes 60 images, else nothing.
            image_size: side of the square that images are stretched to, or (height, width); not used where an
                embedder makes the rows.
            test: a folder like ``labeled``.
            channels: 1 for gray, 3 for RGB; None takes 1 if all labeled images are gray, whatever their mode.
            seed: of the choice of held-out images.
            augment: as for ``Scenario``; ``"photos"`` where a mirrored image has the same class.
            cache_dir: where decoded images are kept; default ``$WRSSL_CACHE``, else ``wrssl/images`` in the user's
                cache folder. False for memory only.
            jobs: number of threads; default one per processor.
            progress: show a bar; default after two seconds on a terminal.
            max_pixels: larger files are skipped, as a small file may claim to be a huge image.

        Returns:
            The scenario; the truth about its pool is unknown.
        """
        from wrssl.data.images.folders import FolderOptions, find_folders  # loads Pillow

        scenario = cls.__new__(cls)
        scenario.unread = find_folders(
            FolderOptions(
                labeled=labeled,
                unlabeled=unlabeled,
                validation=validation,
                image_size=image_size,
                test=test,
                channels=channels,
                seed=seed,
                augment=augment,
                cache_dir=cache_dir,
                jobs=jobs,
                progress=progress,
                max_pixels=max_pixels,
            )
        )
        return scenario

    def __getattr__(self, name: str) -> Any:
        """Read items that were not read yet, as pixels: Python calls this for attributes that are not there."""
        unread = self.__dict__.get("unread")
        if unread is None or "labeled" in self.__dict__ or (name.startswith("_") and name != "_is_ood"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__.update(vars(self.of_content(unread, unread.as_pixels())))
        return getattr(self, name)

    @classmethod
    def of_content(cls, unread: Unread, content: Content, embedding: Embedding | None = None) -> Scenario:
        """The scenario of items that have been read.

        Args:
            unread: the items.
            content: what reading them gave.
            embedding: how they became rows; None for pixels.
        """
        found = cls(
            content.labeled,
            content.pool,
            content.validation,
            content.test,
            content.is_ood,
            name=unread.name,
            augment=None if embedding is not None else unread.augment,
            overlap="allow",
            ids=content.ids,
            embedding=embedding,
            origin=content.origin,
        )
        found.unread = unread
        return found

    def as_items(self) -> Unread:
        """What an embedder can make rows of: the items behind this scenario, or its images."""
        return ImageArrays(self, self._is_ood) if self.unread is None else self.unread

    @cached_property
    def center(self) -> Tensor:
        """The mean of the pool's rows, (F,), float32; of images, of their values as they are stored."""
        return self._moments[0].float()

    @property
    def spread(self) -> float:
        """The root of the mean squared distance of the pool's rows from their mean."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Tensor, float]:
        """In float64, part by part: a pool on disk stays there."""
        total, squares = torch.zeros(math.prod(self.input_shape), dtype=torch.float64), 0.0
        first = prepare(self.unlabeled[:1]).double().flatten(1)  # near the others, so that no digits cancel
        for _, part in chunks(self.unlabeled):
            values = prepare(part).double().flatten(1) - first
            total += values.sum(0)
            squares += float(values.square().sum())
        mean = total / len(self.unlabeled)
        return mean + first[0], math.sqrt(max(0.0, squares / len(self.unlabeled) - float(mean.square().sum())))

    def _remarks(self) -> list[str]:
        """Sentences about classes missing in the validation part, constant features, channels-last images."""
        notes = []
        if self.validation is not None:
            seen = torch.bincount(self.validation[1], minlength=self.num_classes)
            for index in (seen == 0).nonzero().flatten().tolist():
                notes.append(f"The validation part has no example of the class {self.classes[index].item()!r}.")
        if self.embedding is not None:
            return notes
        if len(self.input_shape) == 1:
            both = set(constant_features(self.labeled[0])) & set(constant_features(self.unlabeled))
            constant = sorted(c for c in both if bool(self.labeled[0][0, c] == self.unlabeled[0, c]))
            if constant:
                shown = ", ".join(map(str, constant[:_SHOWN])) + (" …" if len(constant) > _SHOWN else "")
                notes.append(f"Features with one value everywhere tell nothing and can be left out: {shown}.")
        elif self.input_shape[2] in (1, 3) and self.input_shape[0] > 4:
            notes.append(
                f"Images of shape {self.input_shape} look like (H, W, C); (C, H, W) is read: if so, pass "
                "X.transpose(0, 3, 1, 2)."
            )
        return notes

    def __repr__(self) -> str:
        if "labeled" not in self.__dict__ and self.unread is not None:
            return f"Scenario({self.unread.name!r}, {len(self.unread.labeled_items())} labeled items, not read yet)"
        sizes = [f"labeled={len(self.labeled[0])}", f"unlabeled={len(self.unlabeled)}"]
        sizes += [
            f"{key}={len(part[0])}" for key, part in (("validation", self.validation), ("test", self.test)) if part
        ]
        truth = "unknown" if self._is_ood is None else "known"
        return (
            f"Scenario({self.name!r}, {', '.join(sizes)}, classes={self.num_classes}, input={self.input_shape}, "
            f"truth {truth})"
        )


def _pair(data: Pairs, part: str) -> tuple[Tensor, Rows]:
    if isinstance(data, Dataset):
        rows, labels = read_dataset(data, part)
        if labels is None:
            raise DataError(f"The items of the {part} Dataset have no label; its items must be pairs (x, y).")
        return rows, labels
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise DataError(f"The {part} part must be a pair (X, y) or a Dataset of pairs; pass both X and y.")
    return to_rows(data[0], part), data[1]


def one_precision(parts: list[Tensor]) -> list[Tensor]:
    """The parts as float32 where only some are of half precision, which otherwise stays as it is."""
    if any(rows.dtype == torch.float16 for rows in parts) and any(rows.dtype == torch.float32 for rows in parts):
        return [rows.float() if rows.dtype == torch.float16 else rows for rows in parts]
    return parts


def _positive(name: str, value: float, zero: bool = False) -> float:
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise OptionError(f"{name} must be a finite number {'of at least' if zero else 'above'} 0, not {value}.")
    return float(value)
