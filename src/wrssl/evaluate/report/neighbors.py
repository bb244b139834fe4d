"""The labeled examples that are most like a member of the pool, in the embedding that the run was made in.

Rows x become directions u = (x − c) / ‖x − c‖ from the mean c of the pool, as in the weighting itself; alike is what
has a large cosine u·v. A direction is 0 where a row lies at c, and its cosine with every other one is 0.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.data import CHUNK, prepare, unit_rows

NUMBER = 3
DIGITS = 12  # cosines that differ by less are equal: sums of products depend on where a row stands in a table


def directions(rows: Tensor, center: Tensor) -> Tensor:
    """U for each stored row, float64.

    Args:
        rows: (n, d), of any type that a scenario stores.
        center: c, (d,).
    """
    return unit_rows(prepare(rows).double(), center.double())


def nearest(
    members: Tensor, labeled: Tensor, center: Tensor, number: int = NUMBER
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The places of the most similar labeled rows and their cosines, (n, k) each, the most similar first.

    Of equally similar rows the first come first; k is ``number``, or less where there are fewer labeled rows.

    Args:
        members: directions, (n, d).
        labeled: stored rows; they are read in parts.
        center: of the directions.
        number: how many for each member.
    """
    number = min(number, len(labeled))
    place = np.zeros((len(members), 0), dtype=np.int64)
    cosine = np.zeros((len(members), 0))
    for start in range(0, len(labeled), CHUNK):
        part = directions(labeled[start : start + CHUNK], center)
        found = np.round((members @ part.T).numpy(), DIGITS)
        candidates = np.concatenate([cosine, found], axis=1)
        places = np.concatenate([place, np.broadcast_to(start + np.arange(len(part)), found.shape)], axis=1)
        best = np.empty((len(members), min(number, candidates.shape[1])), dtype=np.int64)
        left = candidates.copy()
        for rank in range(best.shape[1]):
            best[:, rank] = left.argmax(1)  # the first of equals
            np.put_along_axis(left, best[:, rank : rank + 1], -np.inf, axis=1)
        place, cosine = (np.take_along_axis(values, best, axis=1) for values in (places, candidates))
    return place, np.clip(cosine, -1.0, 1.0)


def rows_at(stored: Tensor, places: NDArray[np.int64]) -> Tensor:
    """Some of the stored rows, by number."""
    return stored[torch.from_numpy(places)]
