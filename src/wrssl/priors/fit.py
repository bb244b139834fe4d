"""The prior of a whole pool: kinds that are cross-fitted, stacked, and calibrated.

``fit_prior`` is the whole story in the order in which it happens: ``samples.py`` draws rows of the reference (labeled
examples, and the validation examples that drive the weights) and of the pool, and their folds; ``crossfit.py`` fits the
kinds without each fold and stacks their scores; the rest of the pool is scored by all fold models, whose mean is less
noisy than one of them, so its p-values are, if anything, too large; ``calibrate.py`` turns scores into weights and
p-values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from wrssl import progress
from wrssl.api import Rows, State
from wrssl.errors import DataError
from wrssl.judging import Belonging
from wrssl.priors.calibrate import WeightCurve, belonging, conformal_p, ood_score, weight_curve
from wrssl.priors.crossfit import Comparison, cross_fit
from wrssl.priors.kinds import DEFAULT, Labels
from wrssl.priors.samples import draw_samples, finite

if TYPE_CHECKING:
    from wrssl.priors.one_class import OneClass

Index: TypeAlias = slice | NDArray[np.int64]
CHUNK = 5_000
FEWEST = 20  # references, or members, below which nothing is concluded
CONSTANT = WeightCurve(np.zeros(1), np.ones(1))  # every member has weight 1


@dataclass(frozen=True)
class Prior:
    """What is known about every pool member before training: four bytes each, the rest is computed when asked for.

    Attributes:
        scores: the stacked log-odds of every member, float32; high where it looks like the reference.
        known: those of the reference, by models, stack and offsets that were fitted without it; empty where there were
            too few references to conclude anything.
        curve: from a score to a weight.
        shares: what each kind counts in the stack.
        log_loss: of the stack, out of fold; log 2 where reference and pool look alike; NaN for one-class scores.
        comparison: what scores other rows: samples with the models behind the prior, or one-class scores; None where
            nothing was fitted, or where the prior was stored without it.
    """

    scores: NDArray[np.float32]
    known: NDArray[np.float64]
    curve: WeightCurve
    shares: dict[str, float]
    log_loss: float
    comparison: Comparison | OneClass | None = None

    def weight(self, rows: Index) -> NDArray[np.float64]:
        """P(own | x) of these members, in [0, 1]."""
        return self.curve(self._scores(rows))

    def p(self, rows: Index) -> NDArray[np.float64]:
        """The conformal p-value: small where hardly a reference example is as strange."""
        return conformal_p(self._scores(rows), self.known)

    def ood_score(self, rows: Index) -> NDArray[np.float64]:
        """1 − p without ties, in [0, 1); ½ where nothing is known."""
        return ood_score(self._scores(rows), self.known)

    def belonging(self, rows: Index) -> Belonging:
        """All three of these members."""
        return belonging(self._scores(rows), self.known, self.curve)

    def undecided(self) -> Prior:
        """The same with weight 1 for every member; whether one belongs is judged as before."""
        return replace(self, curve=CONSTANT)

    def state_dict(self) -> State:
        """As tensors, for a training that is resumed; without the comparison and the names of the kinds."""
        curve = self.curve
        arrays = {"scores": self.scores, "known": self.known, "nodes": curve.nodes, "values": curve.values}
        numbers = torch.tensor([*self.shares.values(), self.log_loss], dtype=torch.float64)
        return {"prior numbers": numbers, **{f"prior {name}": torch.from_numpy(a) for name, a in arrays.items()}}

    @classmethod
    def from_state(cls, state: State, kinds: Sequence[str], comparison: Comparison | OneClass | None = None) -> Prior:
        """Inverse of ``state_dict``; other entries of ``state`` are ignored.

        Args:
            state: as stored.
            kinds: the names of the kinds.
            comparison: as it was fitted again before the state is loaded.
        """
        scores, known, nodes, values = (
            state[f"prior {name}"].numpy() for name in ("scores", "known", "nodes", "values")
        )
        *shares, log_loss = state["prior numbers"].tolist()
        if len(shares) != len(kinds):
            raise DataError(
                f"The stored prior has {len(shares)} kinds, but the options name {len(kinds)}; resume it with the same "
                "kinds."
            )
        shares_of = dict(zip(kinds, shares, strict=True))
        return cls(scores, known, WeightCurve(nodes, values), shares_of, log_loss, comparison)

    def _scores(self, rows: Index) -> NDArray[np.float64]:
        return self.scores[rows].astype(np.float64)


def fit_prior(known: Rows, labels: Labels, pool: Rows, seed: int, kinds: Sequence[str] = DEFAULT) -> Prior:
    """Compare the pool with the reference.

    Args:
        known: the rows of the reference.
        labels: their classes.
        pool: the rows of the pool, read in parts.
        seed: of samples, folds and kinds.
        kinds: registered names (``wrssl.register_prior``).
    """
    size = len(pool)
    if min(len(known), size) < FEWEST:
        return no_conclusion(size, kinds)
    with progress.note("comparing the pool with the labels"):
        samples, part = draw_samples(known, labels, pool, seed)
        models, found = cross_fit(samples, kinds)
    scores = np.empty(size, dtype=np.float32)
    scores[part] = found.pool
    if len(part) < size:
        for rows in progress.slices(size, CHUNK, "scoring the pool"):
            inside = part[slice(*np.searchsorted(part, [rows.start, rows.stop]))] - rows.start
            there = np.delete(np.arange(rows.stop - rows.start), inside)
            if len(there):
                scores[rows.start + there] = models(finite(pool[rows])[there])
    # Rounded like those of the pool: where every score is the same, equal must stay equal.
    known_scores, nested = (z.astype(np.float32).astype(np.float64) for z in (found.known, found.nested))
    curve = weight_curve(known_scores, scores[part].astype(np.float64))
    shares = dict(zip(kinds, models.shares.tolist(), strict=True))
    return Prior(scores, nested, curve, shares, found.log_loss, Comparison(samples, kinds, models))


def no_conclusion(size: int, kinds: Sequence[str]) -> Prior:
    """The prior from too few rows: every member belongs."""
    return Prior(np.zeros(size, np.float32), np.zeros(0), CONSTANT, dict.fromkeys(kinds, 0.0), float(np.log(2)))
