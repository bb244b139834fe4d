"""Small squares of the pictures that a run was made on: files are opened again, at most as many as are shown.

A file that is no longer there, or holds no picture any more, gives a gray square.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDE = 64  # pixels of a square, at most
GRAY = 128
MAX_PIXELS = 100_000_000
_BATCH = 8  # files per task of a thread


@dataclass(frozen=True)
class Squares:
    """Pictures as squares of one size.

    Attributes:
        pixels: (n, side, side, 3), uint8.
        missing: how many of them are gray.
    """

    pixels: NDArray[np.uint8]
    missing: int


def squares(items: Sequence[Any]) -> Squares:
    """The largest square in the middle of each picture.

    All have the side of the largest one, at most ``SIDE`` pixels, so that tiny pictures take little space.

    Args:
        items: paths, or uint8 pictures (H, W) or (H, W, 3); threads ask for them one by one.
    """
    from wrssl.data.images import choose_jobs, formats, in_order, quiet  # loads Pillow

    formats()  # before there are threads
    # By number: a picture may be made when it is asked for, and all of them at once could be too many.
    with quiet(), closing(in_order(lambda k: _square(items[k]), range(len(items)), choose_jobs(None), _BATCH)) as found:
        each = list(found)
    side = max((len(one) for one in each if one is not None), default=1)
    pixels = np.full((len(each), side, side, 3), GRAY, dtype=np.uint8)
    for place, one in enumerate(each):
        if one is not None:
            pixels[place] = one if len(one) == side else resized(one, side)
    return Squares(pixels, sum(one is None for one in each))


def _square(item: Any) -> NDArray[np.uint8] | None:
    """The square in the middle, at most ``SIDE`` pixels wide; None where there is no picture."""
    from wrssl.data.images import Unreadable, open_picture

    if isinstance(item, (str, os.PathLike)):
        try:
            with open(item, "rb") as file:
                picture = open_picture(file, SIDE, MAX_PIXELS)
        except (OSError, ValueError):  # ValueError: a name that no file can have
            return None
        if isinstance(picture, Unreadable):
            return None
    else:
        values = np.asarray(item)
        picture = values if values.ndim == 3 else np.repeat(values[..., None], 3, axis=2)
    height, width = picture.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    middle = picture[top : top + side, left : left + side]
    return middle if side <= SIDE else resized(middle, SIDE)


def resized(square: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """With another number of pixels: means when there are fewer, the same ones repeated when there are more."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(square))
    return np.asarray(image.resize((side, side), Image.Resampling.BOX))
