"""Random changes of examples that leave their class alone, as operations on whole batches."""

from __future__ import annotations

from torch import Tensor

from wrssl.api import Augmentation, OptionError

AUGMENTATIONS = ("none", "table", "shapes", "signs", "photos")


def default_kind(shape: tuple[int, ...]) -> str:
    """What suits examples of this shape."""
    if len(shape) == 1:
        return "table"
    return "shapes" if shape[0] == 1 else "signs"


def value_range(x: Tensor) -> tuple[float, float]:
    """The least and the largest value that an input of the network takes, judged by these stored rows."""
    if not x.is_floating_point():
        return -1.0, 1.0
    return float(x.min()), float(x.max())


def augmentation_for(kind: str, shape: tuple[int, ...], limits: tuple[float, float]) -> Augmentation | None:
    """The augmentation of this name for examples of this shape."""
    if kind not in AUGMENTATIONS:
        raise OptionError(f"augment must be one of {', '.join(AUGMENTATIONS)}, not {kind!r}.")
    return None
