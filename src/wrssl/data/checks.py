"""What must be true of the parts of a scenario, checked in one streamed pass per question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wrssl.api import DataError
from wrssl.data.chunks import chunks
from wrssl.data.overlap import Overlap, RowTable, find_overlaps


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


LARGEST = 1e15  # statistics square the values, and a network sums them up; float32 ends at 3e38


def check_finite(name: str, rows: Tensor) -> None:
    """No NaN, no infinite value and none that is too large to compute with; says where the first one is."""
    if not rows.is_floating_point():
        return
    for start, chunk in chunks(rows):
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


def check_truth(is_ood: Any, size: int) -> Tensor:
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


def check_overlap(
    parts: Mapping[str, Tensor], pool: str, allow: bool, ids: Sequence[object] | None = None
) -> list[str]:
    """No row in two parts, except labelled rows in the pool; returns notes about what was let pass.

    Args:
        parts: all parts by name, the labelled one first.
        pool: the name of the pool among them.
        allow: report every overlap as a note.
        ids: what the members of the pool are called, if not by their row.

    Returns:
        The notes.
    """
    notes: list[str] = []
    tables: dict[str, RowTable] = {}
    small = [name for name in parts if name != pool]
    for name in [*small, pool]:  # the pool last: it is walked over once and never hashed as a whole
        for other, overlap in find_overlaps(tables, parts[name]).items():
            harmless = name == pool and other == small[0]  # labelled rows in the pool: common practice
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
