"""Mix the pool: which in-distribution (ID) rows stay, which foreign (OOD) rows come in, in which order.

M0 is the number of pool rows without foreign ones: all available ID rows, or fewer where there are fewer foreign
rows than that, so that in mode ``replace`` every ratio from 0 to 1 is possible.

    replace:  n_ood = round(ratio · M0),  n_id = M0 − n_ood                                    (the paper)
    add:      n_id = M0 − round(0.75 · M0),  n_ood = round(n_id · ratio / (1 − ratio))

so both modes hold the same ID rows at 75 %. The ID rows are the first n_id of a fixed random order: those of a
higher ratio are a subset of those of a lower one. A third mode, ``oliver``, exchanges whole classes: ``classwise.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wrssl.api import DataError, OptionError
from wrssl.data.classwise import mix_classes
from wrssl.data.parts import Array, Foreign, Parts
from wrssl.data.streams import stream

MODES = ("replace", "add", "oliver")


def shares(total: int, kinds: int) -> list[int]:
    """``total`` split into equal shares; the first ones get what is left over."""
    return [total // kinds + (place < total % kinds) for place in range(kinds)]


def capacity(foreign: Sequence[Foreign]) -> int | None:
    """How many foreign rows there are at most in equal shares, or None where any number can be made."""
    limits = [len(foreign) * kind.available for kind in foreign if kind.available is not None]
    return min(limits) if limits else None


def check_options(ratio: float, mode: str) -> None:
    """Whether ratio and mode make sense, before any file is read."""
    if mode not in MODES:
        raise OptionError(f'mode must be "replace", "add" or "oliver", not {mode!r}.')
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float, np.floating)) or not 0 <= ratio <= 1:
        raise OptionError(f"ratio is the share of foreign rows in the pool; give a number from 0 to 1, not {ratio!r}.")
    if mode == "add" and ratio == 1:
        raise OptionError('ratio 1 has no ID rows, but mode "add" keeps them; use mode "replace" or a smaller ratio.')


def counts(available_id: int, available_ood: int | None, ratio: float, mode: str) -> tuple[int, int]:
    """Numbers of ID and OOD rows in the pool (the rules above).

    Args:
        available_id: number of ID rows that the pool may hold.
        available_ood: number of foreign rows, or None for any number.
        ratio: share of foreign rows in the pool, in [0, 1].
        mode: ``"replace"`` or ``"add"``.

    Returns:
        ``(n_id, n_ood)``.
    """
    check_options(ratio, mode)
    size = available_id if available_ood is None else min(available_id, available_ood)
    if mode == "replace":
        n_ood = round(ratio * size)
        return size - n_ood, n_ood
    n_id = size - round(0.75 * size)
    n_ood = round(n_id * ratio / (1 - ratio))
    if available_ood is not None and n_ood > available_ood:
        largest = math.floor(1e4 * available_ood / (n_id + available_ood)) / 1e4
        raise DataError(
            f'ratio {ratio} in mode "add" needs {n_ood} foreign rows and there are {available_ood}; '
            f"use a ratio of at most {largest}."
        )
    return n_id, n_ood


def mix(parts: Parts, ratio: float, mode: str, seed: int, clean: bool = False) -> tuple[Array, Array]:
    """The pool and the truth about it.

    Args:
        parts: what the source handed over.
        ratio: share of foreign rows.
        mode: ``"replace"``, ``"add"`` or ``"oliver"``.
        seed: of the order in which pool rows are stored; the position of a row says nothing about it.
        clean: leave the foreign rows out and keep exactly the ID rows, in the same order.

    Returns:
        The rows and ``is_ood``, one bool per row.
    """
    if mode == "oliver":
        check_options(ratio, mode)
        return mix_classes(parts, ratio, seed, clean)
    n_id, n_ood = counts(len(parts.pool), capacity(parts.foreign), ratio, mode)
    if clean and n_id == 0:
        raise OptionError("A clean pool at ratio 1 would be empty; use a smaller ratio.")
    order = stream(seed, "pool order").permutation(n_id + n_ood)
    if clean:
        order = order[order < n_id]
        return parts.pool[order], np.zeros(n_id, dtype=np.bool_)
    taken, taken_labels = parts.pool[n_id:], parts.pool_labels[n_id:]
    pieces = [parts.pool[:n_id]]
    for kind, number in zip(parts.foreign, shares(n_ood, len(parts.foreign)), strict=True):
        if number:
            pieces.append(kind.draw(number, taken, taken_labels))
    return np.concatenate(pieces)[order], order >= n_id
