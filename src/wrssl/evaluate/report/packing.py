"""Columns of the whole pool in little space: whole numbers as base64, names without what they share with the last one.

A weight is stored as the whole number q with q / 10,000 ≤ w < (q + 1) / 10,000. It is rounded down, so that for a
threshold t of at most four decimals q ≥ 10,000 t holds exactly where w ≥ t does: a list of kept members that is made
from q is the list that the full table would give.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCALE = 10_000


def down(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    """The whole numbers q above, for values in [0, 1]."""
    q = np.floor(values * SCALE)
    # 0.29 · 10,000 is 2899.9999999999995: compare with the quotients, which are the nearest numbers to the decimals.
    q = np.where((q + 1) / SCALE <= values, q + 1, q)
    q = np.where(q / SCALE > values, q - 1, q)
    return np.clip(q, 0, SCALE).astype(np.uint16)


def near(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    """The nearest whole number of ten thousandths, for values that are only looked at and sorted by."""
    return np.clip(np.rint(np.nan_to_num(values) * SCALE), 0, SCALE).astype(np.uint16)


def packed(values: NDArray[Any]) -> dict[str, Any]:
    """Whole numbers, little-endian, one or two bytes each."""
    size = 1 if len(values) == 0 or int(values.max()) < 256 else 2
    raw = values.astype("<u1" if size == 1 else "<u2").tobytes()
    return {"bytes": size, "data": base64.b64encode(raw).decode("ascii")}


def unpacked(column: dict[str, Any]) -> NDArray[np.int64]:
    """Inverse of ``packed``."""
    raw = base64.b64decode(column["data"])
    return np.frombuffer(raw, "<u1" if column["bytes"] == 1 else "<u2").astype(np.int64)


def front_coded(names: Sequence[str]) -> list[int | str]:
    """For each name, how many characters it takes over from the one before, and the rest.

    Characters are counted as JavaScript does, in units of UTF-16, since a browser puts the names together again.
    """
    coded: list[int | str] = []
    before = ""
    for name in names:
        shared = name[: _shared(before, name)]
        coded += [len(shared.encode("utf-16-le", "surrogatepass")) // 2, name[len(shared) :]]
        before = name
    return coded


def names_of(coded: list[int | str] | None, number: int) -> list[str]:
    """Inverse of ``front_coded``, as a browser does it; without a list, the names are the numbers from 0 on."""
    if coded is None:
        return [str(k) for k in range(number)]
    names, before = [], ""
    for taken, rest in zip(coded[::2], coded[1::2], strict=True):
        kept = before.encode("utf-16-le", "surrogatepass")[: 2 * int(taken)].decode("utf-16-le", "surrogatepass")
        before = f"{kept}{rest}"
        names.append(before)
    return names


def _shared(one: str, other: str) -> int:
    """Length of the longest common beginning."""
    shorter = min(len(one), len(other))
    return next((k for k in range(shorter) if one[k] != other[k]), shorter)


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or open a comment."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return written
