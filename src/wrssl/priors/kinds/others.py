"""Kinds that are no logistic regression and not among the default ones: nearest neighbors, the energy, trees."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.classes import classifier
from wrssl.priors.kinds import Context, Labels, Matrix, Score
from wrssl.registry import register_prior

TREES = 100


@register_prior("neighbours")
def neighbours(labeled: Matrix, labels: Labels, pool: Matrix) -> Score:
    """Sees foreign rows by the densities of the two samples around them.

        score(x) = log( mean distance to the k nearest of the pool / mean distance to the k nearest of the reference )

    which grows with the ratio of the densities; k is a tenth of √n of each sample, at least 1.
    """
    from sklearn.neighbors import NearestNeighbors

    def search(part: Matrix) -> NearestNeighbors:
        near = max(1, round(0.1 * math.sqrt(len(part))))
        return NearestNeighbors(n_neighbors=min(len(part), near), algorithm="brute").fit(part)

    searches = search(labeled), search(pool)

    def score(rows: Matrix) -> NDArray[np.float64]:
        to_labeled, to_pool = (found.kneighbors(rows)[0].mean(1).astype(np.float64) for found in searches)
        tiny = np.finfo(np.float32).tiny
        ratio: NDArray[np.float64] = np.log(np.maximum(to_pool, tiny)) - np.log(np.maximum(to_labeled, tiny))
        return ratio

    return score


@register_prior("energy")
def energy(labeled: Matrix, labels: Labels, pool: Matrix) -> Score:
    """Sees foreign rows by the low confidence of a classifier of the reference's classes; constant for one class.

        score(x) = log Σ_c exp z_c(x),   z = a ridge multinomial regression on the reference

    (Liu, Wang, Owens, Li, 2020: "Energy-based Out-of-distribution Detection"). It does not use the pool, so it is the
    one kind that works for a pool with few members. With principal components it is weak; its authors use the features
    of a trained network.
    """
    logits = classifier(labeled, labels, int(labels.max()) + 1)

    def score(rows: Matrix) -> NDArray[np.float64]:
        value: NDArray[np.float64] = np.logaddexp.reduce(logits(rows), axis=1)
        return value

    return score


@register_prior("trees")
def trees(labeled: Matrix, labels: Labels, pool: Matrix, context: Context) -> Score:
    """The log-odds of the share of the reference in the leaves that a row falls into, in extremely randomized trees.

    (Geurts, Ernst, Wehenkel, 2006.) They see any foreign rows, from enough references: better than the other kinds
    from some thousand references on, ten times as slow, and worse with a hundred, so they are not among the default
    kinds.
    """
    from sklearn.ensemble import ExtraTreesClassifier

    model = ExtraTreesClassifier(
        TREES, min_samples_leaf=3, class_weight="balanced_subsample", random_state=context.seed
    )
    is_reference = np.r_[np.ones(len(labeled)), np.zeros(len(pool))]
    model.fit(np.concatenate([labeled, pool]), is_reference)

    def score(rows: Matrix) -> NDArray[np.float64]:
        p = model.predict_proba(rows)[:, 1].clip(0.5 / TREES, 1 - 0.5 / TREES)
        odds: NDArray[np.float64] = np.log(p / (1 - p))
        return odds

    return score
