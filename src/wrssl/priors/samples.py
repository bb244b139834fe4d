"""What a prior is fitted to: rows of the reference and of the pool, all that is drawn at random, and the units of rows.

Everything random about a fit is drawn here, once: which rows, the seed of the kinds, and the folds. It is kept with the
rows, so that the models are a function of ``Samples`` and can be fitted again without a generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from wrssl.api import Rows
from wrssl.data import spread_over_folds
from wrssl.errors import DataError
from wrssl.priors.kinds import Labels, Matrix

Folds: TypeAlias = NDArray[np.uint8]

POOL_ROWS, KNOWN_ROWS = 10_000, 10_000  # that the kinds are fitted to; more do not help, they only take time
FOLDS = 5
DOUBT = 10.0  # κ of Units, in references


@dataclass(frozen=True)
class Samples:
    """Rows as they were read, and what was drawn for their comparison.

    Attributes:
        known: rows of the reference, (n, d).
        labels: their classes, (n,).
        pool: rows of the pool, (m, d).
        seed: of the kinds.
        known_folds: a fold for each reference, (n,).
        pool_folds: a fold for each of the pool's rows, (m,).
    """

    known: Matrix
    labels: Labels
    pool: Matrix
    seed: int
    known_folds: Folds
    pool_folds: Folds


def draw_samples(known: Rows, labels: Labels, pool: Rows, seed: int) -> tuple[Samples, NDArray[np.int64]]:
    """Draw rows, seed and folds; returns the samples, and which members are among them, in increasing order."""
    random = np.random.default_rng(seed)
    chosen = np.sort(shuffled(len(known), random)[:KNOWN_ROWS]).astype(np.int64)
    part = np.sort(shuffled(len(pool), random)[:POOL_ROWS]).astype(np.int64)
    own, members = (finite(rows[torch.from_numpy(at)]) for rows, at in ((known, chosen), (pool, part)))
    return Samples(own, labels[chosen], members, *draw_folds(labels[chosen], len(members), random)), part


def shuffled(size: int, random: np.random.Generator) -> NDArray[np.int32] | NDArray[np.int64]:
    """``random.permutation(size)``, number by number, in half of its memory where the numbers allow it."""
    order = np.arange(size, dtype=np.int32 if size <= np.iinfo(np.int32).max else np.int64)
    random.shuffle(order)  # draws the same whatever the type is
    return order


def draw_folds(labels: Labels, members: int, random: np.random.Generator) -> tuple[int, Folds, Folds]:
    """The seed of the kinds, the folds of the references, and those of as many rows of the pool.

    Every class of the reference is spread evenly over the folds.
    """
    seed = int(random.integers(2**31))
    known_folds = spread_over_folds(labels, random.permutation(len(labels)), FOLDS)
    pool_folds = random.permutation(members) % FOLDS
    return seed, known_folds.astype(np.uint8), pool_folds.astype(np.uint8)


def finite(rows: torch.Tensor) -> Matrix:
    """The rows as an array; NaN and infinite values are an error."""
    if not bool(torch.isfinite(rows).all()):
        raise DataError("The embedding contains NaN or infinite values; remove them before comparing.")
    return rows.numpy().astype(np.float32, copy=False)


@dataclass(frozen=True)
class Units:
    """The units in which pool and reference are compared: (x − mean) / deviation by column, clipped at ±20.

    Column by column, with the variances s² of the pool and r² of the n references, which few of them estimate badly:

        x ↦ (x − mean of the pool) / min(s, √((n r² + κ s²)/(n + κ))).

    The pool alone would hide what matters most: members that lie far away spread its columns until they are no more
    than two deviations from all other members. Where the pool is the narrower sample, as with means of rows, its own
    deviation counts.
    """

    mean: Matrix
    deviation: Matrix

    LIMIT = 20.0  # deviations: keeps the square of one wild column from drowning all others

    @classmethod
    def of(cls, known: Matrix, pool: Matrix) -> Units:
        """Of these samples; a column with one value is left as it is."""
        wide = pool.var(0, dtype=np.float64)
        own = (len(known) * known.var(0, dtype=np.float64) + DOUBT * wide) / (len(known) + DOUBT)
        deviation = np.sqrt(np.minimum(wide, own))
        return cls(
            pool.mean(0, dtype=np.float64).astype(np.float32),
            np.where(deviation > 1e-12, deviation, 1.0).astype(np.float32),
        )

    def __call__(self, rows: Matrix) -> Matrix:
        """The rows in these units."""
        with np.errstate(over="ignore"):  # what overflows is clipped as well
            scaled: Matrix = np.clip((rows - self.mean) / self.deviation, -self.LIMIT, self.LIMIT)
        return scaled
