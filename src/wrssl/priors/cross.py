"""Scores out of fold: every row is judged by models that were fitted without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wrssl.data import spread_over_folds
from wrssl.priors.classes import Classifier, classifier, offsets
from wrssl.priors.honest import honest_scores
from wrssl.priors.kinds import KINDS
from wrssl.priors.kinds.logistic import together
from wrssl.priors.samples import Matrix, Samples, Score
from wrssl.priors.stack import log_loss, stack

FOLDS = 5


@dataclass(frozen=True)
class Crossed:
    """The stacked scores of the samples, out of fold and without what is merely their class; how to score other rows.

    Attributes:
        known: of the reference.
        pool: of the part of the pool that the kinds were fitted to.
        honest: of the reference, each fold by a stack without it.
        shares: v of the stack.
        log_loss: of the stack, before classes are taken out.
    """

    known: NDArray[np.float64]
    pool: NDArray[np.float64]
    honest: NDArray[np.float64]
    shares: NDArray[np.float64]
    log_loss: float
    _models: list[list[Score]]  # by fold and kind
    _scale: NDArray[np.float64]  # by fold and kind: mean and deviation of the score over the pool
    _shift: float
    _classifiers: list[Classifier]  # by fold
    _offsets: NDArray[np.float64]  # by class

    def score(self, rows: Matrix) -> NDArray[np.float64]:
        """The mean over the folds, for rows that no model was fitted to."""
        wanted = np.flatnonzero(self.shares > 0)
        said = {kind: together([models[kind] for models in self._models], rows) for kind in wanted.tolist()}
        total = np.zeros(len(rows))
        for fold, scale in enumerate(self._scale):
            for kind, by_fold in said.items():
                mean, deviation = scale[kind]
                total += self.shares[kind] * (by_fold[fold] - mean) / deviation
        logits = np.sum([classifier(rows) for classifier in self._classifiers], axis=0)
        scores: NDArray[np.float64] = total / len(self._models) + self._shift - self._offsets[logits.argmax(1)]
        return scores


def cross(samples: Samples, kinds: Sequence[str], random: np.random.Generator) -> Crossed:
    """Fit every kind without each fold, score the fold, stack the scores, compare within classes."""
    seed, classes = int(random.integers(2**31)), int(samples.labels.max()) + 1
    folds_known, folds_pool = balanced_folds(samples.labels, random), random.permutation(len(samples.pool)) % FOLDS
    known, pool = (np.empty((len(rows), len(kinds))) for rows in (samples.known, samples.pool))
    class_known, class_pool = (np.zeros(len(rows), dtype=np.int64) for rows in (samples.known, samples.pool))
    everyone = range(FOLDS)
    models, scale = [list[Score]() for _ in everyone], np.empty((FOLDS, len(kinds), 2))
    classifiers = list[Classifier]()
    for fold in everyone:
        inside_known, inside_pool = folds_known == fold, folds_pool == fold
        rest = Samples(
            samples.known[~inside_known], samples.labels[~inside_known], samples.pool[~inside_pool], samples.known
        )
        here_known, here_pool = samples.known[inside_known], samples.pool[inside_pool]
        for number, kind in enumerate(kinds):
            model = KINDS[kind](rest, seed)
            models[fold].append(model)
            there = model(here_pool)
            mean, deviation = float(there.mean()), max(float(there.std()), 1e-12)
            scale[fold, number] = mean, deviation
            # In units of the pool, fold by fold: two fits of a kind need not agree on a scale.
            pool[inside_pool, number] = (there - mean) / deviation
            known[inside_known, number] = (model(here_known) - mean) / deviation
        classifiers.append(classifier(rest, classes))
        class_known[inside_known] = classifiers[fold](here_known).argmax(1)
        class_pool[inside_pool] = classifiers[fold](here_pool).argmax(1)
    shares, shift = stack(known, pool)
    z_known, z_pool = known @ shares + shift, pool @ shares + shift
    loss, off = log_loss(z_known, z_pool), offsets(z_known, class_known, classes)
    z_known, z_pool = z_known - off[class_known], z_pool - off[class_pool]
    honest = honest_scores(known, pool, class_known, folds_known, folds_pool, classes)
    return Crossed(z_known, z_pool, honest, shares, loss, models, scale, shift, classifiers, off)


def balanced_folds(labels: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """A fold for every labelled row; every class is spread over the folds."""
    return spread_over_folds(labels, random.permutation(len(labels)), FOLDS)
