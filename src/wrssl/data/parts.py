"""What a source hands over: the parts before mixing, and where its foreign rows come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
LabeledArrays: TypeAlias = tuple[Array, Array]


@dataclass(frozen=True)
class Request:
    """What the user asked a source for.

    Attributes:
        ood: the kind of foreign rows, one of those listed in ``data/load.py``.
        seed: of all random choices.
        data_dir: the folder that holds the files.
        download: fetch missing files.
        labels_per_class: number of labelled rows per class, or None for the source's own number.
        validation_size: number of validation rows, or None for the source's own number.
    """

    ood: str
    seed: int
    data_dir: Path
    download: bool = False
    labels_per_class: int | None = None
    validation_size: int | None = None


@dataclass(frozen=True)
class Foreign:
    """One kind of foreign (OOD) rows.

    Attributes:
        name: for messages.
        available: how many there are at most, or None where any number can be made.
        draw: ``draw(n, taken, taken_labels)`` gives n rows. ``taken`` are the training rows that mixing took out
            of the pool, the only ones that new rows may be made of. Fewer rows are a prefix of more rows.
    """

    name: str
    available: int | None
    draw: Callable[[int, Array, Array], Array]


def stored(name: str, rows: Array) -> Foreign:
    """Foreign rows that exist already, in an order that is random by seed; ``draw(n)`` takes the first n."""
    return Foreign(name, len(rows), lambda n, taken, taken_labels: rows[:n])


@dataclass(frozen=True)
class Parts:
    """A source's data before mixing.

    Attributes:
        labeled: inputs and labels.
        pool: all in-distribution rows that the pool may hold, in an order that is random by seed.
        pool_labels: their labels; used to make ``mean`` images and never handed on.
        validation: inputs and labels, or None.
        test: inputs and labels.
        foreign: the kinds of foreign rows, in equal shares.
        noise: σ of the input noise.
        augment: which random changes leave the class alone, one of ``data.augment.AUGMENTATIONS``.
        vat_epsilon: radius of the adversarial step.
    """

    labeled: LabeledArrays
    pool: Array
    pool_labels: Array
    validation: LabeledArrays | None
    test: LabeledArrays
    foreign: tuple[Foreign, ...]
    noise: float
    augment: str
    vat_epsilon: float

    def __post_init__(self) -> None:
        assert len(self.pool) == len(self.pool_labels)
        assert self.pool.dtype in (np.dtype(np.uint8), np.dtype(np.float32))
