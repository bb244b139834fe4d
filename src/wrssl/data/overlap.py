"""Find equal rows in two parts of a scenario: by hash first, by exact comparison second.

The hash of a row is a sum over its 64-bit words, each mixed with a constant of its own position:

    h(row) = Σ_i mix(word_i · c_i)   mod 2^64,   mix(v) = (v xor v >> 29) · m,

computed for a whole chunk of rows at once. It only proposes candidates: every reported pair is equal value by
value, so a collision costs time and never a wrong answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wrssl.data.chunks import chunks

Hashes = npt.NDArray[np.uint64]

_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


@dataclass(frozen=True)
class Overlap:
    """How many rows of the second part occur in the first one, and the first such pair.

    Attributes:
        count: number of rows of the second part that have an equal row in the first.
        first: the row in the first part and the row in the second part.
    """

    count: int
    first: tuple[int, int]


def _words(rows: Tensor) -> Hashes:
    """The rows as 64-bit words, zero-padded; −0.0 becomes 0.0, as both are the same value."""
    flat = rows.reshape(len(rows), -1)
    values = (flat + 0.0 if flat.is_floating_point() else flat).contiguous().numpy()
    raw = values.view(np.uint8).reshape(len(rows), -1)
    missing = -raw.shape[1] % 8
    if missing:
        raw = np.pad(raw, ((0, 0), (0, missing)))
    return np.ascontiguousarray(raw).view(np.uint64)


def row_hashes(rows: Tensor) -> Hashes:
    """One 64-bit hash per row; rows with equal values have equal hashes."""
    result = np.empty(len(rows), dtype=np.uint64)
    factors: Hashes | None = None
    for start, chunk in chunks(rows):
        words = _words(chunk)
        if factors is None:
            # Fixed constants (odd, so that multiplying loses nothing); their randomness needs no secret.
            factors = np.random.default_rng(0).integers(0, 2**64, words.shape[1], dtype=np.uint64) | np.uint64(1)
        mixed = words * factors
        mixed ^= mixed >> _SHIFT
        mixed *= _MULTIPLIER
        result[start : start + len(chunk)] = mixed.sum(axis=1, dtype=np.uint64)
    return result


class RowTable:
    """The rows of one part, prepared for look-ups."""

    def __init__(self, rows: Tensor) -> None:
        self._rows = rows
        hashes = row_hashes(rows)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]

    def find(self, rows: Tensor, hashes: Hashes) -> list[tuple[int, int]]:
        """Pairs ``(row here, row there)`` of equal rows, at most one per row there, in the order of ``rows``."""
        left = np.searchsorted(self._sorted, hashes, side="left")
        right = np.searchsorted(self._sorted, hashes, side="right")
        there = np.flatnonzero(right > left)
        here = self._order[left[there]]
        same = (self._rows[here] == rows[there]).flatten(1).all(dim=1).tolist()
        found = []
        for row, guess, equal in zip(there.tolist(), here.tolist(), same, strict=True):
            if equal:
                found.append((guess, row))
                continue
            for other in self._order[left[row] + 1 : right[row]].tolist():  # a hash collision
                if torch.equal(self._rows[other], rows[row]):
                    found.append((other, row))
                    break
        return found


def find_overlaps(tables: dict[str, RowTable], rows: Tensor) -> dict[str, Overlap]:
    """Which rows of a part occur in other parts; one pass over ``rows``, whatever the number of tables.

    Args:
        tables: the other parts, by name.
        rows: the part to walk over, possibly memory-mapped.

    Returns:
        An ``Overlap`` for every table that shares a row with ``rows``.
    """
    result: dict[str, Overlap] = {}
    for start, chunk in chunks(rows):
        hashes = row_hashes(chunk)
        for name, table in tables.items():
            pairs = table.find(chunk, hashes)
            if pairs:
                here, there = pairs[0]
                known = result.get(name, Overlap(0, (here, start + there)))
                result[name] = Overlap(known.count + len(pairs), known.first)
    return result


def first_occurrences(rows: Tensor, barred: Tensor | None = None) -> npt.NDArray[np.bool_]:
    """True for rows that occur neither earlier in ``rows`` nor anywhere in ``barred``.

    Public image sets hold a few exact copies; the named scenarios drop them, so that no part leaks into another.
    """
    hashes = row_hashes(rows)
    fresh = np.ones(len(rows), dtype=np.bool_)
    order = np.argsort(hashes, kind="stable")
    for place in (np.flatnonzero(np.diff(hashes[order]) == 0) + 1).tolist():
        here = int(order[place])
        back = place - 1
        while back >= 0 and hashes[order[back]] == hashes[here]:
            if torch.equal(rows[here], rows[int(order[back])]):
                fresh[here] = False
                break
            back -= 1
    if barred is not None and len(barred):
        for _, there in RowTable(barred).find(rows, hashes):
            fresh[there] = False
    return fresh
