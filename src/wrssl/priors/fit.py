"""The prior of a whole pool: kinds fitted crosswise, stacked, and calibrated.

The reference (labelled examples, and the validation examples that drive the weights) and a random part of the pool are
divided into folds. Every kind is fitted without one fold and scores it, so that no row is judged by a model that was
fitted to it; the stack and the calibration see such scores only. The rest of the pool is scored by all fold models,
whose mean is less noisy than one of them: its p-values are, if anything, too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from wrssl.api import DataError, Rows
from wrssl.priors.calibrate import WeightCurve, conformal_p, smooth_p, weight_curve
from wrssl.priors.comparison import Comparison
from wrssl.priors.kinds import DEFAULT
from wrssl.priors.samples import Matrix, shuffled
from wrssl.progress import note, slices

Index: TypeAlias = slice | NDArray[np.int64]
POOL_ROWS, KNOWN_ROWS = 10_000, 10_000  # that the kinds are fitted to; more do not help, they only take time
CHUNK = 5_000
FEWEST = 20  # references, or members, below which nothing is concluded
ALIKE = WeightCurve(np.zeros(1), np.ones(1))  # everybody has weight 1


@dataclass(frozen=True)
class Prior:
    """What is known about every pool member before training: four bytes each, the rest is computed when asked for.

    Attributes:
        scores: the stacked log-odds of every member, float32; high where it looks like the reference.
        known: those of the reference, out of fold in every respect; empty where there were too few to conclude
            anything.
        curve: from a score to a weight.
        shares: what each kind counts in the stack.
        log_loss: of the stack, out of fold; log 2 where reference and pool look alike.
        comparison: the samples behind it, for those who want to score other examples; None where it is not known.
    """

    scores: NDArray[np.float32]
    known: NDArray[np.float64]
    curve: WeightCurve
    shares: dict[str, float]
    log_loss: float
    comparison: Comparison | None = None

    def weight(self, rows: Index) -> NDArray[np.float64]:
        """P(own | x) of these members, in [0, 1]."""
        return self.curve(self.scores[rows].astype(np.float64))

    def p(self, rows: Index) -> NDArray[np.float64]:
        """The conformal p-value: small where hardly a reference example is as strange."""
        return conformal_p(self.scores[rows].astype(np.float64), self.known)

    def ood_score(self, rows: Index) -> NDArray[np.float64]:
        """1 − p without ties, in [0, 1); ½ where nothing is known."""
        scores = self.scores[rows].astype(np.float64)
        return 1 - smooth_p(scores, self.known) if len(self.known) else np.full(len(scores), 0.5)

    def undecided(self) -> Prior:
        """The same with weight 1 for everybody; who belongs is judged as before."""
        return replace(self, curve=ALIKE)


def fit_prior(known: Rows, labels: NDArray[np.int64], pool: Rows, seed: int, kinds: Sequence[str] = DEFAULT) -> Prior:
    """Compare the pool with the reference.

    Args:
        known: the rows of the reference.
        labels: their classes.
        pool: the rows of the pool, read in parts.
        seed: of samples, folds and kinds.
        kinds: names from ``KINDS``.
    """
    size, random = len(pool), np.random.default_rng(seed)
    if min(len(known), size) < FEWEST:
        return ignorance(size, kinds)
    with note("comparing the pool with the labels"):
        chosen = np.sort(shuffled(len(known), random)[:KNOWN_ROWS]).astype(np.int64)
        part = np.sort(shuffled(size, random)[:POOL_ROWS]).astype(np.int64)
        own, foreign = (_finite(rows[torch.from_numpy(at)]) for rows, at in ((known, chosen), (pool, part)))
        comparison = Comparison(own, labels[chosen], foreign, tuple(kinds), seed, (len(known), size))
        scale, crossed = comparison.models()
    scores = np.empty(size, dtype=np.float32)
    scores[part] = crossed.pool
    if len(part) < size:
        for rows in slices(size, CHUNK, "scoring the pool"):
            inside = part[slice(*np.searchsorted(part, [rows.start, rows.stop]))] - rows.start
            there = np.delete(np.arange(rows.stop - rows.start), inside)
            if len(there):
                scores[rows.start + there] = crossed.score(scale(_finite(pool[rows])[there]))
    # Rounded like those of the pool: where every score is the same, equal must stay equal.
    own_scores, honest = (z.astype(np.float32).astype(np.float64) for z in (crossed.known, crossed.honest))
    curve = weight_curve(own_scores, scores[part].astype(np.float64))
    shares = dict(zip(kinds, crossed.shares.tolist(), strict=True))
    return Prior(scores, honest, curve, shares, crossed.log_loss, comparison)


def ignorance(size: int, kinds: Sequence[str]) -> Prior:
    """Too little to compare: everybody belongs."""
    return Prior(np.zeros(size, np.float32), np.zeros(0), ALIKE, dict.fromkeys(kinds, 0.0), float(np.log(2)))


def _finite(rows: torch.Tensor) -> Matrix:
    if not bool(torch.isfinite(rows).all()):
        raise DataError("The embedding contains NaN or infinite values; remove them before comparing.")
    return rows.numpy().astype(np.float32, copy=False)
