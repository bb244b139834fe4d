"""The order in which a data set is visited: a pseudo-random permutation per epoch, computed instead of stored.

Position n of the endless sequence belongs to epoch e = n // N; its member is π_e(n mod N). π_e is a Feistel network
over the smallest even number of bits that holds N, with values ≥ N walked on until they fall below (cycle walking
keeps it a bijection). So every epoch visits every member once, a step costs O(batch) time and memory whatever N is,
and any step can be resumed from its number alone.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

ROUNDS = 6
BLOCK = 64  # batches that are computed at once, to spread numpy's overhead per call
_MULTIPLY = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def _mix(x: np.ndarray) -> np.ndarray:
    """A bijective 64-bit hash (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * _MULTIPLY[0]
    x = (x ^ (x >> np.uint64(27))) * _MULTIPLY[1]
    mixed: np.ndarray = x ^ (x >> np.uint64(31))
    return mixed


def permute(position: np.ndarray, epoch: np.ndarray, size: int, key: int) -> np.ndarray:
    """π_epoch(position) for arrays of positions in [0, size)."""
    half = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
    mask = (np.uint64(1) << half) - np.uint64(1)
    value, keys = position.astype(np.uint64), _mix(epoch.astype(np.uint64) + np.uint64(key))
    waiting = np.ones(len(value), dtype=bool)
    while waiting.any():
        left, right, k = value[waiting] >> half, value[waiting] & mask, keys[waiting]
        for number in range(ROUNDS):
            left, right = right, left ^ (_mix(right + k + np.uint64(number << 40)) & mask)
        value[waiting] = (left << half) | right
        waiting = value >= size
    return value.astype(np.int64)


def epoch_shift(epoch: np.ndarray, key: int) -> np.ndarray:
    """A number in [0, 1) for each epoch."""
    bits = _mix(epoch.astype(np.uint64) + np.uint64(key) + np.uint64(1 << 62)) >> np.uint64(11)
    shift: np.ndarray = bits.astype(np.float64) / float(1 << 53)
    return shift


class Order:
    """The endless sequence of batches over ``size`` members.

    Args:
        size: N.
        batch: members per batch; a batch may reach into the next epoch.
        key: which sequence; equal keys give equal sequences.
    """

    def __init__(self, size: int, batch: int, key: int) -> None:
        # At least two rows, the same one twice if need be: batch norm has no statistics of a single row.
        self.size, self.batch, self.key = size, min(batch, max(2, size)), key
        self._block = -1
        self._members = torch.zeros(0, dtype=torch.int64)

    def __call__(self, step: int) -> Tensor:
        """The members of batch ``step``, int64, shape (B,)."""
        block, offset = divmod(step, BLOCK)
        if block != self._block:
            count = BLOCK * self.batch
            n = np.arange(block * count, (block + 1) * count, dtype=np.int64)
            self._members = torch.from_numpy(self._at(n))
            self._block = block
        return self._members[offset * self.batch : (offset + 1) * self.batch]

    def _at(self, n: np.ndarray) -> np.ndarray:
        """The members at these positions of the sequence."""
        return permute(n % self.size, n // self.size, self.size, self.key)


class ThinnedOrder(Order):
    """The endless sequence of batches over members that are not all visited equally often.

    Member j owns an interval of length a_j of the line [0, A), A = Σ a_j. An epoch has n = ⌊A⌋ visits, at the points

        (k + u_e) · A/n,   k = 0 … n − 1,

    with one random shift u_e per epoch, in a random order. Since a_j ≤ 1 ≤ A/n no member is visited twice in an epoch,
    and the probability of a visit is a_j n/A (systematic sampling). A visit is found by bisection, so a step costs
    O(batch · log M), and any step can be resumed from its number alone.

    Args:
        rates: a, in [0, 1], not all zero.
        batch: members per batch; a batch may reach into the next epoch.
        key: which sequence; equal keys and rates give equal sequences.
    """

    def __init__(self, rates: Tensor, batch: int, key: int) -> None:
        # Running sums in double precision: those of ten million float32 numbers lose the small ones.
        self.ends = np.cumsum(rates.numpy(), dtype=np.float64)
        total = float(self.ends[-1])
        super().__init__(max(1, int(total)), batch, key)  # an order of the visits of an epoch
        self.spacing = total / self.size

    def _at(self, n: np.ndarray) -> np.ndarray:
        place = super()._at(n) + epoch_shift(n // self.size, self.key)
        # Clamp: rounding can overshoot the last interval.
        point = np.minimum(place * self.spacing, np.nextafter(self.ends[-1], 0))
        members: np.ndarray = np.searchsorted(self.ends, point, side="right")
        return members
