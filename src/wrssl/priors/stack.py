"""How much each kind of score is worth: a stack of log-odds, chosen by the cross-validated log-loss.

With the out-of-fold scores S (one column per kind, each brought to variance 1 over the pool) and n references,

    min_{v ≥ 0, b}   n · [mean_known log(1 + e^{−z}) + mean_pool log(1 + e^{z})] + κ Σ_k (v_k − 1/K)²,   z = S v + b.

With few references the log-loss cannot tell the kinds apart and the stack stays near their mean; with thousands it
decides. A kind that sees nothing gets no weight, and one that is wrong never a negative one.

The stack and the class offsets are fitted too, and to few references they fit well: scores of references that took part
in that fit are a little too high, and members that belong seem strange beside them. For a weight that does not matter,
for a guaranteed rate of mistakes it does; ``nested_scores`` are those of references that took no part.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.classes import offsets
from wrssl.priors.kinds import Labels
from wrssl.priors.samples import Folds

Scores: TypeAlias = NDArray[np.float64]

PULL = 10.0  # κ, in units of one reference


def log_loss(z_known: Scores, z_pool: Scores) -> float:
    """½ [mean log(1 + e^{−z}) over the reference + mean log(1 + e^{z}) over the pool]; log 2 where z tells nothing."""
    return 0.5 * float(np.logaddexp(0, -z_known).mean() + np.logaddexp(0, z_pool).mean())


def stack(known: Scores, pool: Scores) -> tuple[Scores, float]:
    """V and b for scores of shape (n, K) and (m, K) that have variance 1 over the pool."""
    from scipy.optimize import minimize
    from scipy.special import expit

    n, kinds = known.shape

    def value(u: Scores) -> tuple[float, Scores]:
        v, b = u[:-1], u[-1]
        z_known, z_pool = known @ v + b, pool @ v + b
        # Derivatives of the two losses by z: −σ(−z)/n and σ(z)/m.
        by_known, by_pool = -expit(-z_known) / n, expit(z_pool) / len(pool)
        slope = np.r_[known.T @ by_known + pool.T @ by_pool, by_known.sum() + by_pool.sum()] * n
        slope[:-1] += 2 * PULL * (v - 1 / kinds)
        return 2 * n * log_loss(z_known, z_pool) + PULL * float(np.square(v - 1 / kinds).sum()), slope

    start = np.r_[np.full(kinds, 1 / kinds), 0.0]
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * kinds + [(None, None)])
    return found.x[:-1], float(found.x[-1])


def nested_scores(
    known: Scores, pool: Scores, known_class: Labels, known_folds: Folds, pool_folds: Folds, classes: int
) -> Scores:
    """Stacked scores of the references, shape (n,), each fold by a stack and class offsets that were fitted without it.

    Args:
        known: out-of-fold scores of the references by kind, (n, K).
        pool: those of the pool, (m, K).
        known_class: the class of each reference as a classifier without its fold predicts it.
        known_folds: of the references.
        pool_folds: of the pool.
        classes: their number.
    """
    nested = np.empty(len(known))
    for fold in np.unique(known_folds):
        here = known_folds == fold
        shares, shift = stack(known[~here], pool[pool_folds != fold])
        off = offsets(known[~here] @ shares + shift, known_class[~here], classes)
        nested[here] = known[here] @ shares + shift - off[known_class[here]]
    return nested
