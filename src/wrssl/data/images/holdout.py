"""Labels of folders that are held out for validation: how many, which, and what is said about it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wrssl.data.checks import row_hashes
from wrssl.data.convert import LABELED, to_rows
from wrssl.data.items import IMAGE
from wrssl.data.streams import numpy_stream
from wrssl.errors import OptionError

Mask: TypeAlias = npt.NDArray[np.bool_]
Values: TypeAlias = npt.NDArray[Any]  # pixels, or rows of an embedding

SHARE = 0.25
LEAST_HELD = 60  # in all: half of them choose between models (the fallback of a run), and fewer than 30 could not
LEAST_LEFT = 10  # of each class


def groups(rows: Values) -> npt.NDArray[np.int64]:
    """A number per row, the same for equal rows (and, with odds of one to 10¹⁹ per pair, for others)."""
    _, place = np.unique(row_hashes(to_rows(rows, LABELED)), return_inverse=True)
    return np.asarray(place.reshape(-1), dtype=np.int64)


def automatic(sizes: list[int]) -> list[int]:
    """How many labels of each class are held out by default; all zero for "none".

    A quarter of each class, if that makes 60 labels, at least one of each class, and leaves at least 10 in every class.
    Held-out labels choose between the models of the default (weighted, plain, supervised). A handful of them would
    choose at random, and training needs them more: with fewer the weights are found by cross-fitting, on all labels.
    """
    held = [int(SHARE * size) for size in sizes]
    each = all(number >= 1 and size - number >= LEAST_LEFT for size, number in zip(sizes, held, strict=True))
    return held if each and sum(held) >= LEAST_HELD else [0] * len(sizes)


def by_share(sizes: list[int], share: float) -> list[int]:
    """The share of each class, rounded; at least one label of a class that has two, and never its last one."""
    return [max(0, min(max(1, round(share * size)), size - 1)) if share else 0 for size in sizes]


def check_share(share: object) -> float:
    """The share as a float in [0, 1), or an ``OptionError``."""
    if isinstance(share, (int, float, np.integer, np.floating)) and not isinstance(share, bool) and 0 <= share < 1:
        return float(share)
    raise OptionError(
        f"validation must be a folder, a share of the labels from 0 (none) to below 1, or None, not {share!r}."
    )


def hold_out(rows: Values, labels: npt.NDArray[np.str_], share: float | None, seed: int) -> tuple[Mask, dict[str, int]]:
    """Choose the labeled rows that become validation rows.

    Only rows without an exact copy among the labels are held out: the copy would be trained on. What is held out of one
    class does not depend on the others.

    Args:
        rows: labeled images.
        labels: their classes.
        share: of each class; None for the default rule, 0 for none.
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
        held[numpy_stream(seed, f"held out of {label}").permutation(member)[:number]] = True
    return held, dict(zip(members, sizes, strict=True))


def about_held(
    held: npt.NDArray[np.bool_], different: dict[str, int], share: float | None, kind: str = IMAGE
) -> list[str]:
    """What was held out for validation.

    Args:
        held: True for each labeled row that is held out.
        different: the number of labeled rows of each class that have no copy.
        share: what the user asked for; None for the default rule.
        kind: ``"image"`` or ``"text"``.
    """
    if share == 0:
        return []
    if held.any():
        other = ", or validation=0 to train on all of them" if share is None else ""
        return [
            f"{held.sum()} of the {len(held)} labeled {kind}s are held out for validation, chosen by the seed within "
            f"each class; give a validation folder to train on more{other}."
        ]
    number = sum(different.values())
    needed = f"{2 * len(different)} of them" if share else f"{int(LEAST_HELD / SHARE)} of them"
    return [
        f"No labeled {kind} is held out for validation, as there are too few different ones ({number}): "
        f"the weights are found by cross-fitting, and nothing chooses between models; {needed}, evenly spread over the "
        "classes, or a validation folder would change that, and wrssl audit says how good the model is."
    ]
