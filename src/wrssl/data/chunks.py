"""Walk over the rows of a large tensor in pieces, so that a memory-mapped pool is never in memory at once."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

_CHUNK_BYTES = 1 << 23


def chunks(rows: Tensor, nbytes: int = _CHUNK_BYTES) -> Iterator[tuple[int, Tensor]]:
    """Yield ``(start, rows[start:stop])`` with at most about ``nbytes`` bytes (at least one row) each."""
    width = max(1, rows[0].numel() * rows.element_size()) if len(rows) else 1
    step = max(1, nbytes // width)
    for start in range(0, len(rows), step):
        yield start, rows[start : start + step]
