"""Mix the pool: which in-distribution (ID) rows stay, which foreign (OOD) rows come in, in which order.

M0 is the number of pool rows without foreign ones: all available ID rows, or fewer where there are fewer foreign
rows than that, so that in mode ``replace`` every ratio from 0 to 1 is possible.

    replace:  n_ood = round(ratio · M0),  n_id = M0 − n_ood                                    (the paper)
    add:      n_id = M0 − round(0.75 · M0),  n_ood = round(n_id · ratio / (1 − ratio))

so both modes hold the same ID rows at 75 %. The ID rows are the first n_id of a fixed random order: those of a higher
ratio are a subset of those of a lower one.

A third mode, ``oliver``, is that of Oliver et al. (2018): the ratio is the share of the pool's CLASSES that are
foreign. Let n be the smaller of the numbers of ID and of foreign classes, in the order of their labels, and m the
number of rows that each of the 2n candidates below can give. With k = ratio · n, which must be a whole number:

    the pool holds m rows of each of n classes: the last n − k of the ID classes and the first k foreign classes

The labeled classes do not change; what shrinks with the ratio is the number of ID classes in the pool. The size of the
pool, n · m, does not depend on the ratio. CIFAR-10 (n = 4, ratios 0, 0.25, …, 1):

    deer dog frog horse → airplane dog frog horse → airplane automobile frog horse → … → airplane automobile ship truck
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wrssl.data.source import Array, Foreign, ForeignClasses, Parts
from wrssl.data.streams import numpy_stream
from wrssl.errors import DataError, OptionError

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
        parts: what the source gives.
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
    if n_ood and not parts.foreign:
        raise OptionError("This source has no foreign rows; use ratio=0.")
    order = numpy_stream(seed, "pool order").permutation(n_id + n_ood)
    if clean:
        order = order[order < n_id]
        return parts.pool[order], np.zeros(n_id, dtype=np.bool_)
    taken, taken_labels = parts.pool[n_id:], parts.pool_labels[n_id:]
    pieces = [parts.pool[:n_id]]
    for kind, number in zip(parts.foreign, shares(n_ood, len(parts.foreign)), strict=True):
        if number:
            pieces.append(_checked(kind, kind.draw(number, taken, taken_labels), number, parts.pool))
    return np.concatenate(pieces)[order], order >= n_id


def _checked(kind: Foreign, rows: Array, number: int, pool: Array) -> Array:
    """The drawn rows, if they are as many as asked for and fit the pool."""
    if rows.shape != (number, *pool.shape[1:]) or rows.dtype != pool.dtype:
        raise DataError(
            f"The foreign rows {kind.name!r} have shape {rows.shape} and type {rows.dtype}; the pool needs "
            f"{(number, *pool.shape[1:])} and {pool.dtype}."
        )
    return rows


def mix_classes(parts: Parts, ratio: float, seed: int, clean: bool = False) -> tuple[Array, Array]:
    """The pool and the truth about it, by the rule of ``oliver``.

    Args:
        parts: what the source gives.
        ratio: share of the pool's classes that are foreign.
        seed: of the order in which pool rows are stored.
        clean: leave the foreign classes out and keep exactly the ID rows, in the same order.

    Returns:
        The rows and ``is_ood``, one bool per row.
    """
    foreign = parts.foreign[0] if len(parts.foreign) == 1 else None
    if not isinstance(foreign, ForeignClasses):
        raise OptionError(
            'mode "oliver" exchanges classes, and these foreign rows have none; use mode "replace" or "add", or '
            'ood="classes" where there is such a kind.'
        )
    own, other = np.unique(parts.pool_labels), np.unique(foreign.labels)
    n = min(len(own), len(other))
    k = round(ratio * n)
    if abs(ratio * n - k) > 1e-6:
        below, above = int(ratio * n) / n, (int(ratio * n) + 1) / n
        raise OptionError(
            f'ratio {ratio} of {n} classes is no whole number of classes for mode "oliver"; use {below:g} or {above:g}.'
        )
    if clean and k == n:
        raise OptionError("A clean pool at ratio 1 would be empty; use a smaller ratio.")
    own, other = own[-n:], other[:n]
    m = min(
        *(int((parts.pool_labels == label).sum()) for label in own),
        *(int((foreign.labels == label).sum()) for label in other),
    )
    pieces = [parts.pool[parts.pool_labels == label][:m] for label in own[k:]]
    pieces += [foreign.rows[foreign.labels == label][:m] for label in other[:k]]
    n_id = (n - k) * m
    order = numpy_stream(seed, "pool order").permutation(n * m)
    if clean:
        order = order[order < n_id]
    return np.concatenate(pieces)[order], order >= n_id
