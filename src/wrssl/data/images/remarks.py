"""Sentences for the user about what was done with the folders."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wrssl.data.images.holdout import LEAST_HELD, SHARE
from wrssl.data.images.scan import Skipped, printable

GREY = "All labelled images are grey, so all images are used with one channel; pass channels=3 to keep colours."
_SHOWN = 3


def about_held(held: npt.NDArray[np.bool_], different: dict[str, int], share: float | None) -> list[str]:
    """What was held out for validation.

    Args:
        held: True for each labelled row that is held out.
        different: the number of labelled rows of each class that have no copy.
        share: what the user asked for; None for the automatic rule.
    """
    if share == 0:
        return []
    if held.any():
        other = ", or validation=0 to train on all of them" if share is None else ""
        return [
            f"{held.sum()} of the {len(held)} labelled images are held out for validation, chosen by the seed within "
            f"each class; give a validation folder to train on more{other}."
        ]
    number = sum(different.values())
    needed = f"{2 * len(different)} of them" if share else f"{int(LEAST_HELD / SHARE)} of them"
    return [
        f"No labelled image is held out for validation, as there are too few different ones ({number}): "
        f"the weights are found by cross-fitting, and nothing chooses between models; {needed}, evenly spread over the "
        "classes, or a validation folder would change that, and wrssl audit says how good the model is."
    ]


def about_skipped(skipped: list[Skipped]) -> list[str]:
    """How many files were not used, and the most frequent reasons."""
    if not skipped:
        return []
    count = Counter(reason.split(" (")[0] for _, reason in skipped).most_common()
    shown = ", ".join(f"{reason}: {number}" for reason, number in count[:_SHOWN])
    more = ", …" if len(count) > _SHOWN else ""
    files = "1 file was" if len(skipped) == 1 else f"{len(skipped)} files were"
    return [f"{files} skipped ({shown}{more}); skipped.csv has names and reasons."]


def about_cache(trouble: str | None, cache: Path | None) -> list[str]:
    """Why the images will be decoded again next time."""
    if trouble is None:
        return []
    return [
        f"The decoded images are in memory only, as {printable(str(cache))} cannot be written ({trouble}); name "
        "another cache_dir to be quicker next time."
    ]
