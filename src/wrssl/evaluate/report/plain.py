"""Values as JSON can hold them, and text that any file can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LONGEST = 120  # characters of a text that is only looked at


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries only; what is not finite becomes None."""
    if isinstance(value, Mapping):
        return {text(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (bool, int)) or value is None else text(value)


def text(value: Any) -> str:
    """``str(value)``; bytes of a file name that are no characters are written as escapes, since UTF-8 has none."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def short(value: Any, longest: int = LONGEST) -> str:
    """A text for the eye: a long one loses its middle."""
    whole = text(value)
    if len(whole) <= longest:
        return whole
    end = (longest - 1) // 2
    return f"{whole[: longest - 1 - end]}…{whole[len(whole) - end :]}"


def thinned(rows: list[Any], most: int) -> list[Any]:
    """At most so many of the rows, evenly spread, the first and the last among them."""
    if len(rows) <= most:
        return rows
    return [rows[round(place * (len(rows) - 1) / (most - 1))] for place in range(most)]
