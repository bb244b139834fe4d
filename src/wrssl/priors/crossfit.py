"""Cross-fitting: every row of the samples is scored by models that were fitted without it.

Reference and pool are divided into folds. Every kind is fitted without one fold and scores it; the stack, the class
offsets and the calibration see such scores only. A row outside of the samples is scored by the mean of all fold models,
which is less noisy than one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from wrssl import progress
from wrssl.priors.classes import Classifier, classifier, offsets
from wrssl.priors.kinds import Context, Matrix, Score, checked, kind_named
from wrssl.priors.kinds.logistic import score_together
from wrssl.priors.samples import FOLDS, Samples, Units
from wrssl.priors.stack import log_loss, nested_scores, stack


@dataclass(frozen=True)
class SampleScores:
    """The stacked scores of the samples, out of fold and with class offsets removed.

    Attributes:
        known: of the reference, (n,).
        pool: of the members in the sample, (m,).
        nested: of the reference, each fold by a stack and offsets without it, (n,).
        log_loss: of the stack, before the offsets are removed.
    """

    known: NDArray[np.float64]
    pool: NDArray[np.float64]
    nested: NDArray[np.float64]
    log_loss: float


@dataclass(frozen=True)
class Models:
    """What scores rows that no model was fitted to.

    Attributes:
        units: of the rows.
        scores: the fitted scores by fold and kind.
        scale: mean and deviation over the pool of each of them, (folds, kinds, 2).
        shares: v of the stack, (kinds,).
        shift: b of the stack.
        classifiers: of the reference's classes, by fold.
        offsets: by class.
    """

    units: Units
    scores: list[list[Score]]
    scale: NDArray[np.float64]
    shares: NDArray[np.float64]
    shift: float
    classifiers: list[Classifier]
    offsets: NDArray[np.float64]

    def __call__(self, rows: Matrix) -> NDArray[np.float64]:
        """The stacked scores of these rows, (n,): the mean over the folds, with class offsets removed."""
        rows = self.units(rows)
        wanted = np.flatnonzero(self.shares > 0).tolist()
        found = {kind: score_together([scores[kind] for scores in self.scores], rows) for kind in wanted}
        total = np.zeros(len(rows))
        for fold, scale in enumerate(self.scale):
            for kind, by_fold in found.items():
                mean, deviation = scale[kind]
                total += self.shares[kind] * (by_fold[fold] - mean) / deviation
        logits = np.sum([classifier(rows) for classifier in self.classifiers], axis=0)
        scores: NDArray[np.float64] = total / len(self.scores) + self.shift - self.offsets[logits.argmax(1)]
        return scores


def cross_fit(samples: Samples, kinds: Sequence[str]) -> tuple[Models, SampleScores]:
    """Fit every kind without each fold, score the fold, stack the scores, compare within classes."""
    with threadpool_limits(1):
        return _cross_fit(samples, kinds)


def _cross_fit(samples: Samples, kinds: Sequence[str]) -> tuple[Models, SampleScores]:
    units = Units.of(samples.known, samples.pool)
    known_rows, pool_rows, classes = units(samples.known), units(samples.pool), int(samples.labels.max()) + 1
    context, fits = Context(samples.seed, known_rows), [kind_named(name) for name in kinds]
    known, pool = (np.empty((len(rows), len(kinds))) for rows in (known_rows, pool_rows))
    known_class, pool_class = (np.zeros(len(rows), dtype=np.int64) for rows in (known_rows, pool_rows))
    models, scale, classifiers = [list[Score]() for _ in range(FOLDS)], np.empty((FOLDS, len(kinds), 2)), []
    for fold in range(FOLDS):
        known_here, pool_here = samples.known_folds == fold, samples.pool_folds == fold
        labeled, labels, members = known_rows[~known_here], samples.labels[~known_here], pool_rows[~pool_here]
        held_known, held_pool = known_rows[known_here], pool_rows[pool_here]
        for number, (name, fit) in enumerate(zip(kinds, fits, strict=True)):
            model = fit(labeled, labels, members, context)
            models[fold].append(model)
            z_pool = checked(name, model(held_pool), len(held_pool))
            z_known = checked(name, model(held_known), len(held_known))
            mean, deviation = float(z_pool.mean()), max(float(z_pool.std()), 1e-12)
            scale[fold, number] = mean, deviation
            # In units of the pool, fold by fold: two fits of a kind need not agree on a scale.
            pool[pool_here, number] = (z_pool - mean) / deviation
            known[known_here, number] = (z_known - mean) / deviation
        classifiers.append(classifier(labeled, labels, classes))
        known_class[known_here] = classifiers[fold](held_known).argmax(1)
        pool_class[pool_here] = classifiers[fold](held_pool).argmax(1)
    shares, shift = stack(known, pool)
    z_known, z_pool = known @ shares + shift, pool @ shares + shift
    loss, off = log_loss(z_known, z_pool), offsets(z_known, known_class, classes)
    nested = nested_scores(known, pool, known_class, samples.known_folds, samples.pool_folds, classes)
    return (
        Models(units, models, scale, shares, shift, classifiers, off),
        SampleScores(z_known - off[known_class], z_pool - off[pool_class], nested, loss),
    )


class Comparison:
    """The samples behind a prior and the models that were fitted to them.

    The models are a function of the samples: neither a file nor a pickle holds them. Where they are missing, they are
    fitted again when a row is to be scored, which takes a few seconds and gives the same models.

    Args:
        samples: what was compared.
        kinds: registered names.
        models: where they are fitted already.
    """

    def __init__(self, samples: Samples, kinds: Sequence[str], models: Models | None = None) -> None:
        self.samples, self.kinds, self._models = samples, tuple(kinds), models

    @property
    def models(self) -> Models:
        """What scores other rows."""
        if self._models is None:
            with progress.note("fitting the comparison with the pool again"):
                self._models = cross_fit(self.samples, self.kinds)[0]
        return self._models

    def __getstate__(self) -> dict[str, Any]:
        """The samples and kinds only: a score from outside the package may be a function that cannot be pickled."""
        return {**vars(self), "_models": None}
