"""The parts of a scenario that come as data frames."""

from __future__ import annotations

import sys
from typing import Any

from wrssl.api import DataError
from wrssl.data.frames.encoder import FrameEncoder


def is_frame(value: Any) -> bool:
    """Whether this is a pandas data frame; pandas is not loaded for the question."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def encode_parts(labeled: Any, pool: Any, *held: Any) -> tuple[FrameEncoder | None, list[Any]]:
    """The encoder and the encoded parts, where the labelled table is a data frame; else None and the parts as given.

    Args:
        labeled: ``(X, y)``.
        pool: the pool.
        held: ``(X, y)`` of the other parts, or None.
    """
    parts = [labeled, pool, *held]
    if not isinstance(labeled, (tuple, list)) or len(labeled) != 2 or not is_frame(labeled[0]):
        return None, parts
    pairs = [part for part in held if part is not None]
    if not is_frame(pool) or not all(isinstance(p, (tuple, list)) and len(p) == 2 and is_frame(p[0]) for p in pairs):
        raise DataError("The labelled rows are a data frame and another part is not; give all parts as data frames.")
    encoder = FrameEncoder.fit(labeled[0], pool)
    encoded = [None if part is None else (encoder.transform(part[0]), part[1]) for part in (labeled, *held)]
    return encoder, [encoded[0], encoder.transform(pool), *encoded[1:]]
