"""Labelled images that are held out for validation when no validation folder is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wrssl.api import OptionError
from wrssl.data.images.copies import groups
from wrssl.data.images.decode import Bytes
from wrssl.data.streams import stream

SHARE = 0.25
LEAST_HELD = 60  # in all: half of them choose between models, and fewer than 30 could not (training/fallback.py)
LEAST_LEFT = 10  # of each class
Mask = npt.NDArray[np.bool_]


def automatic(sizes: list[int]) -> list[int]:
    """How many labels of each class are held out where the user does not say; all zero for "none".

    A quarter of each class, if that makes 60 labels, at least one of each class, and leaves at least 10 in every class.
    Held-out labels choose between the models of the default (weighted, plain, supervised). A handful of them would be a
    lottery, and the network needs them more: with fewer the weights are driven by cross-fitting, on all labels.
    """
    held = [int(SHARE * size) for size in sizes]
    each = all(number >= 1 and size - number >= LEAST_LEFT for size, number in zip(sizes, held, strict=True))
    return held if each and sum(held) >= LEAST_HELD else [0] * len(sizes)


def by_share(sizes: list[int], share: float) -> list[int]:
    """The share of each class, rounded; at least one label where two are there, and never the last one."""
    return [max(0, min(max(1, round(share * size)), size - 1)) if share else 0 for size in sizes]


def check_share(share: Any) -> float:
    """The share as a float in [0, 1), or an ``OptionError``."""
    number = isinstance(share, (int, float, np.integer, np.floating)) and not isinstance(share, bool)
    if not number or not 0 <= float(share) < 1:
        raise OptionError(
            f"validation must be a folder, a share of the labels from 0 (none) to below 1, or None, not {share!r}."
        )
    return float(share)


def hold_out(rows: Bytes, labels: npt.NDArray[np.str_], share: float | None, seed: int) -> tuple[Mask, dict[str, int]]:
    """Choose the labelled rows that become validation rows.

    Only rows without an exact copy among the labels are held out: the copy would be trained on. What is held out of one
    class does not depend on the others.

    Args:
        rows: labelled images.
        labels: their classes.
        share: of each class; None for the automatic rule, 0 for none.
        seed: of the choice.

    Returns:
        True for each row that is held out, and the number of rows without a copy in each class.
    """
    held = np.zeros(len(rows), dtype=np.bool_)
    group = groups(rows)
    single = np.bincount(group)[group] == 1
    members = {label: np.flatnonzero((labels == label) & single) for label in np.unique(labels).tolist()}
    sizes = [len(member) for member in members.values()]
    numbers = automatic(sizes) if share is None else by_share(sizes, share)
    for (label, member), number in zip(members.items(), numbers, strict=True):
        held[stream(seed, f"held out of {label}").permutation(member)[:number]] = True
    return held, dict(zip(members, sizes, strict=True))
