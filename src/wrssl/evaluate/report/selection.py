"""Which members of a large pool are shown: the two ends of the weights, and what lies between at even distances.

Members are ordered by weight; equal weights by ood_score, the strangest first; equal scores by their place in the pool.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST = 1_000  # members with a picture
ENDS = 200  # of them at each end
PER_CLUSTER = 6
CLUSTERS = 40  # that are described; of more, half from each end of the mean weights


@dataclass(frozen=True)
class Shown:
    """The members that are shown.

    Attributes:
        members: their places in the pool, lowest weight first.
        lowest: how many of them are there for their low weight.
        highest: how many for their high weight.
        everybody: whether that is the whole pool.
    """

    members: NDArray[np.int64]
    lowest: int
    highest: int
    everybody: bool


def ordered(weight: NDArray[np.float64], score: NDArray[np.float64]) -> NDArray[np.int64]:
    """The members in the order above."""
    return np.lexsort((-score, weight)).astype(np.int64, copy=False)  # a stable sort: of equals the first comes first


def evenly(length: int, number: int) -> NDArray[np.int64]:
    """``number`` places of ``length``, at even distances, both ends among them; all of them if there are no more."""
    if number >= length:
        return np.arange(length)
    return np.unique(np.rint(np.linspace(0, length - 1, number)).astype(np.int64))


def choose(order: NDArray[np.int64], montages: list[NDArray[np.int64]]) -> Shown:
    """At most ``MOST`` members.

    Args:
        order: of the whole pool, from ``ordered``.
        montages: members that stand for a cluster, and are shown in any case.
    """
    size = len(order)
    if size <= MOST:
        return Shown(order, size, 0, True)
    # By place in the order.
    wanted = np.isin(order, np.concatenate(montages)) if montages else np.zeros(size, dtype=bool)
    wanted[:ENDS] = wanted[size - ENDS :] = True
    left = MOST - int(wanted.sum())
    between = np.flatnonzero(~wanted)
    wanted[between[evenly(len(between), left)]] = True
    return Shown(order[wanted], ENDS, ENDS, False)
