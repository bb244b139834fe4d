"""What must be true of the parts of a scenario, checked in one streamed pass per question.

Equal rows in two parts are found by hash first and by exact comparison second. The hash of a row is a sum over its
64-bit words, each mixed with a constant of its own position:

    h(row) = Σ_i mix(word_i · c_i)   mod 2^64,   mix(v) = (v xor v >> 29) · m,

computed for a whole chunk of rows at once. It only proposes candidates: every reported pair is equal value by
value, so a collision costs time and never a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wrssl.errors import DataError

Hashes = npt.NDArray[np.uint64]

LARGEST = 1e15  # statistics square the values, and a network sums them up; float32 ends at 3e38
_CHUNK_BYTES = 1 << 23
_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


def chunks(rows: Tensor, nbytes: int = _CHUNK_BYTES) -> Iterator[tuple[int, Tensor]]:
    """Yield ``(start, rows[start:stop])`` of about ``nbytes`` bytes each; a memory-mapped pool stays on disk."""
    width = max(1, rows[0].numel() * rows.element_size()) if len(rows) else 1
    step = max(1, nbytes // width)
    for start in range(0, len(rows), step):
        yield start, rows[start : start + step]


def check_shapes(parts: Mapping[str, Tensor]) -> None:
    """Not empty, tabular ``(N, F)`` or images ``(N, C, H, W)``, and one shape and type in all parts."""
    first_name, first = next(iter(parts.items()))
    for name, rows in parts.items():
        if 0 in rows.shape:
            raise DataError(f"The {name} part is empty (shape {tuple(rows.shape)}); give it at least one row.")
        if rows.ndim not in (2, 4):
            advice = "add the channel axis, for example X[:, None]" if rows.ndim == 3 else "reshape it"
            raise DataError(
                f"The {name} data has shape {tuple(rows.shape)}; use (N, F) for tables and (N, C, H, W) for images: "
                f"{advice}."
            )
        if rows.shape[1:] != first.shape[1:]:
            raise DataError(
                f"Rows of the {name} part have shape {tuple(rows.shape[1:])}, those of the {first_name} part "
                f"{tuple(first.shape[1:])}; bring all parts to one shape."
            )
        if rows.dtype != first.dtype:
            raise DataError(
                f"The {name} part is {_short(rows)} and the {first_name} part {_short(first)}; use one type for all "
                "parts, as uint8 is scaled to [-1, 1] and float is not."
            )


def _short(rows: Tensor) -> str:
    return str(rows.dtype).removeprefix("torch.")


def check_finite(name: str, rows: Tensor) -> None:
    """No NaN, no infinite value and none that is too large to compute with; says where the first one is."""
    if not rows.is_floating_point():
        return
    for start, part in chunks(rows):
        chunk = part.float()  # halves cannot be compared with the limit
        low, high = torch.aminmax(chunk)  # NaN if one of them is
        if bool(low >= -LARGEST) and bool(high <= LARGEST):
            continue
        bad = (chunk.abs() <= LARGEST).reshape(len(chunk), -1).all(dim=1).logical_not()
        first = int(bad.nonzero()[0])
        if bool(torch.isfinite(chunk[first]).all()):
            size = float(chunk[first].abs().max())
            raise DataError(
                f"Row {start + first} of the {name} part holds {size:.3g}, and values beyond {LARGEST:.0e} are too "
                "large to compute with; scale the data, or remove that row."
            )
        raise DataError(
            f"The {name} part holds NaN or an infinite value, first in row {start + first}; remove or replace it."
        )


def check_truth(is_ood: npt.ArrayLike | Tensor, size: int) -> Tensor:
    """The truth as a bool tensor with one entry per pool member."""
    values = np.asarray(is_ood.detach().cpu() if isinstance(is_ood, Tensor) else is_ood)
    if values.shape != (size,):
        raise DataError(f"is_ood has shape {values.shape}, the pool {size} rows; give one 0 or 1 per pool row.")
    if values.dtype.kind not in "biuf" or not bool(np.isin(values, (0, 1)).all()):
        raise DataError("is_ood holds values other than 0 and 1; give 1 for foreign rows and 0 for the others.")
    return torch.from_numpy(values.astype(np.bool_))


def constant_features(rows: Tensor) -> list[int]:
    """Columns of a table that have one value in all rows."""
    constant = torch.ones(rows.shape[1], dtype=torch.bool)
    for _, chunk in chunks(rows):
        constant &= (chunk == rows[0]).all(dim=0)
        if not bool(constant.any()):
            break
    return constant.nonzero().flatten().tolist()


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
    """Which rows of a part occur in other parts; one pass over ``rows``, for any number of tables.

    Args:
        tables: the other parts, by name.
        rows: the part to look up, possibly memory-mapped.

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


def check_overlap(
    parts: Mapping[str, Tensor], pool: str, allow: bool, ids: Sequence[object] | None = None
) -> list[str]:
    """No row in two parts, except labeled rows in the pool; returns notes about what is allowed.

    Args:
        parts: all parts by name, the labeled one first.
        pool: the name of the pool among them.
        allow: report every overlap as a note.
        ids: names of the pool's members; None names them by their row.

    Returns:
        The notes.
    """
    notes: list[str] = []
    tables: dict[str, RowTable] = {}
    small = [name for name in parts if name != pool]
    for name in [*small, pool]:  # the pool last: it is read once and never hashed as a whole
        for other, overlap in find_overlaps(tables, parts[name]).items():
            harmless = name == pool and other == small[0]  # labeled rows in the pool: common practice
            found = _sentence(other, name, overlap, ids if name == pool else None)
            if not (allow or harmless):
                raise DataError(found + '; remove them, or pass overlap="allow".')
            notes.append(found + ".")
        if name != pool:
            tables[name] = RowTable(parts[name])
    return notes


def _sentence(first: str, second: str, overlap: Overlap, ids: Sequence[object] | None) -> str:
    one, there = overlap.count == 1, overlap.first[1]
    called = f"{second} row {there}" if ids is None else f"{ids[there]} in the {second} part"
    return (
        f"{overlap.count} {'row' if one else 'rows'} of the {second} part {'is' if one else 'are'} also in the "
        f"{first} part (first: {called} equals {first} row {overlap.first[0]})"
    )
