"""Items that are not in folders: lists of texts or of paths of images, and images in arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.data.convert import LABELED, POOL, TEST, VALIDATION
from wrssl.data.items import IMAGE, TEXT, Content, Embed, Embedded, Items, Unread, are_items, kind_of
from wrssl.errors import DataError, OptionError

if TYPE_CHECKING:
    from wrssl.data.scenario import Scenario

SIDE = 32  # pixels of images that no embedder makes rows of
_SHOWN = 3


class ItemLists(Unread):
    """The parts as the user gave them, checked; the arguments are those of ``Scenario``."""

    def __init__(
        self, labeled: Any, pool: Any, validation: Any, test: Any, ids: Any, is_ood: Any, name: str, augment: str | None
    ) -> None:
        self.name, self.augment = name, augment
        self.items: dict[str, list[Any]] = {LABELED: _listed(labeled[0], LABELED), POOL: _listed(pool, POOL)}
        self.labels: dict[str, Any] = {LABELED: np.asarray(labeled[1])}
        for part, given in ((VALIDATION, validation), (TEST, test)):
            if given is not None:
                if not isinstance(given, (tuple, list)) or len(given) != 2:
                    raise DataError(f"The {part} part must be a pair (X, y), like the labeled one.")
                self.items[part], self.labels[part] = _listed(given[0], part), np.asarray(given[1])
        for part, labels in self.labels.items():
            if len(labels) != len(self.items[part]):
                raise DataError(
                    f"The {part} part has {len(self.items[part])} items and {len(labels)} labels; pass one label per "
                    "item."
                )
        self.ids = list(range(len(self.items[POOL]))) if ids is None else list(ids)
        self.is_ood = None if is_ood is None else np.asarray(is_ood)
        for what, values in (("ids", self.ids), ("entries of is_ood", self.is_ood)):
            if values is not None and len(values) != len(self.items[POOL]):
                raise DataError(
                    f"There are {len(values)} {what} for {len(self.items[POOL])} pool items; give one each."
                )
        self.kind = kind_of(self.items[LABELED])
        if self.kind == IMAGE:
            self.items = {part: [os.fspath(item) for item in items] for part, items in self.items.items()}
        elif not all(isinstance(item, str) for items in self.items.values() for item in items):
            raise DataError("Texts and paths cannot be mixed; give strings for texts, or paths of image files.")

    def labeled_items(self) -> Sequence[Any]:
        """Of the labeled part."""
        return self.items[LABELED]

    def as_pixels(self) -> Content:
        """Images decoded to 32 × 32 pixels in color."""
        if self.kind == TEXT:
            raise DataError("Texts are no numbers, and a network needs numbers; name an embedder, such as minilm.")
        from wrssl.data.images.reader import MAX_PIXELS, make_reader  # loads Pillow

        reader = make_reader(SIDE, 3, MAX_PIXELS)

        def read(items: Sequence[Any], part: str) -> Embedded:
            rows, reasons = reader.read_each(items, f"Reading {part} images")
            return Embedded([rows], np.array([number not in reasons for number in range(len(items))]), reasons)

        return self._content(read, reader)

    def embedded(self, embed: Embed) -> Content:
        """Every item as a row of an embedding."""
        return self._content(embed, None)

    def _content(self, read: Callable[[Sequence[Any], str], Embedded], reader: Any) -> Content:
        from wrssl.data.images.files import printable
        from wrssl.data.images.folders import about_skipped
        from wrssl.data.scenario import Origin

        found = {part: read(items, part) for part, items in self.items.items()}
        skipped, pairs = list[tuple[str, str]](), dict[str, Any]()
        for part, one in found.items():
            if not one.readable.any():
                raise DataError(f"None of the {part} items can be read (first: {one.reasons[0]}); check them.")
            for number, reason in one.reasons.items():
                called = self.ids[number] if part == POOL else f"{part}:{self.items[part][number]}"
                skipped.append((printable(str(called)), reason))
            if part != POOL:
                pairs[part] = one.rows[0], self.labels[part][one.readable]
        lost = sorted(set(self.labels[LABELED].tolist()) - set(pairs[LABELED][1].tolist()), key=str)
        if lost:
            raise DataError(f"No item of the class {lost[0]!r} can be read; give good ones.")
        good = found[POOL].readable
        kept = {part: _chosen(self.items[part], one.readable) for part, one in found.items()}
        known = [found[LABELED], *([found[VALIDATION]] if VALIDATION in found else [])]
        return Content(
            pairs[LABELED],
            found[POOL].rows[0],
            pairs.get(VALIDATION),
            pairs.get(TEST),
            _chosen(self.ids, good),
            Origin(reader=reader, skipped=skipped, notes=about_skipped(skipped)),
            Items(self.kind, kept[LABELED], kept[POOL]),
            found[POOL].rows[1:],
            [np.concatenate(views) for views in zip(*(one.rows[1:] for one in known), strict=True)],
            None if self.is_ood is None else self.is_ood[good],
        )


def _chosen(values: Sequence[Any], mask: Any) -> list[Any]:
    return [value for value, good in zip(values, mask.tolist(), strict=True) if good]


def _listed(values: Any, part: str) -> list[Any]:
    if not are_items(values):
        raise DataError(f"The labeled part holds texts or paths, and the {part} part does not; give lists of one kind.")
    listed = list(values)
    strange = next((value for value in listed if not isinstance(value, (str, os.PathLike))), None)
    if strange is not None:
        raise DataError(
            f"The {part} part holds {type(strange).__name__} beside texts or paths; leave such items out, or convert "
            "them."
        )
    return [str(value) if isinstance(value, str) else value for value in listed]


class Pictures(Sequence[NDArray[np.uint8]]):
    """Stored images (N, C, H, W) as pictures (H, W, 3), converted when they are asked for."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return Pictures(self.rows[place])
        picture = self.rows[place].permute(1, 2, 0).contiguous().numpy()
        return picture if picture.shape[2] == 3 else np.repeat(picture[:, :, :1], 3, axis=2)


class ImageArrays(Unread):
    """The images of a scenario in arrays.

    Args:
        scenario: with uint8 images of 1 or 3 channels.
        is_ood: the truth about its pool, where it is known.
    """

    kind = IMAGE

    def __init__(self, scenario: Scenario, is_ood: Any) -> None:
        shape, kind = scenario.input_shape, scenario.labeled[0].dtype
        if len(shape) != 3 or kind != torch.uint8 or shape[0] not in (1, 3):
            raise OptionError(
                f"An embedder needs photographs or texts: folders, paths, strings, or uint8 images of 1 or 3 channels, "
                f"not {str(kind).removeprefix('torch.')} rows of shape {tuple(shape)}; leave embedder out."
            )
        self.scenario, self.is_ood, self.name = scenario, is_ood, scenario.name

    def labeled_items(self) -> Sequence[Any]:
        """As pictures."""
        return Pictures(self.scenario.labeled[0])

    def as_pixels(self) -> Content:
        """They are pixels already."""
        raise DataError("These images are pixels already; use the scenario itself.")

    def embedded(self, embed: Embed) -> Content:
        """Every image as a row."""
        from wrssl.data.scenario import Origin

        scenario = self.scenario
        parts = {LABELED: scenario.labeled, VALIDATION: scenario.validation, TEST: scenario.test}
        found = {name: (embed(Pictures(x[0]), name), x[1]) for name, x in parts.items() if x is not None}
        pool = embed(Pictures(scenario.unlabeled), POOL)
        pairs = {name: (rows.rows[0], scenario.classes[y.numpy()]) for name, (rows, y) in found.items()}
        known = [found[name][0] for name in (LABELED, VALIDATION) if name in found]
        return Content(
            pairs[LABELED], pool.rows[0], pairs.get(VALIDATION), pairs.get(TEST), scenario.ids,
            Origin(recipe=scenario.recipe, skipped=scenario.skipped, notes=scenario.notes),
            Items(IMAGE, Pictures(scenario.labeled[0]), Pictures(scenario.unlabeled)), pool.rows[1:],
            [np.concatenate(views) for views in zip(*(one.rows[1:] for one in known), strict=True)],
            self.is_ood,
        )  # fmt: skip
