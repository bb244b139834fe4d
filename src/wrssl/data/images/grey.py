"""Whether colour says anything: images that are all grey are used with one channel."""

from __future__ import annotations

import numpy as np
from PIL import Image

from wrssl.api import OptionError
from wrssl.data.images.decode import Bytes

_TOLERANCE = 4  # of 255; what lossy formats make of grey
_STEP = 256


def check_channels(channels: object) -> int | None:
    """1, 3 or None (to be decided), or an ``OptionError``."""
    if channels is None:
        return None
    if isinstance(channels, (int, np.integer)) and not isinstance(channels, bool) and channels in (1, 3):
        return int(channels)
    raise OptionError(f"channels must be 1 (grey), 3 (RGB) or None (decided by the labelled images), not {channels!r}.")


def all_grey(rows: Bytes) -> bool:
    """Whether red, green and blue agree in every pixel of these rows, whatever mode the files have."""
    for start in range(0, len(rows), _STEP):
        piece = rows[start : start + _STEP]
        if int((piece.max(axis=1) - piece.min(axis=1)).max()) > _TOLERANCE:
            return False
    return True


def to_grey(rows: Bytes) -> Bytes:
    """RGB rows as the reader with one channel would have read them."""
    grey = [np.asarray(Image.fromarray(row.transpose(1, 2, 0)).convert("L")) for row in rows]
    return np.stack(grey)[:, None]
