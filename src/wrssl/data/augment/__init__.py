"""Random changes of examples that leave their class alone, as operations on whole batches."""

from __future__ import annotations

from torch import Tensor

from wrssl.api import Augmentation
from wrssl.data.augment.kinds import NOISE, Photos, Shapes, Table
from wrssl.errors import OptionError

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


def augmentation_for(
    kind: str, shape: tuple[int, ...], limits: tuple[float, float], noise: float = NOISE
) -> Augmentation | None:
    """The augmentation of this name for examples of this shape.

    Args:
        kind: one of ``AUGMENTATIONS``.
        shape: of one example, ``(F,)`` or ``(C, H, W)``.
        limits: the least and the largest value of an input of the network.
        noise: σ of the noise that a column of a table can bear.

    Returns:
        An object with ``weak`` and ``strong``, or None for ``"none"``.
    """
    if kind not in AUGMENTATIONS:
        raise OptionError(f"augment must be one of {', '.join(AUGMENTATIONS)}, not {kind!r}.")
    if kind == "none":
        return None
    is_table = len(shape) == 1
    if is_table != (kind == "table"):
        what = 'a table; use "table" or "none"' if is_table else 'images; use "shapes", "signs", "photos" or "none"'
        raise OptionError(f"augment={kind!r} does not go with examples of shape {shape}, which are {what}.")
    if kind == "table":
        return Table(noise)
    return Shapes(limits) if kind == "shapes" else Photos(shape[0], limits, mirrors=kind == "photos")
