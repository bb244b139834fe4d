"""From a score to the numbers that a user sees: does a member belong (p, ood_score), and with which weight.

**p.** The conformal p-value of a member: with the out-of-fold scores of n reference examples,

    p_j = (1 + #{reference: s ≤ s_j}) / (n + 1).

For a member that comes from the distribution of the reference P(p ≤ a) ≤ a, whatever the score is worth. ``smooth_p``
has its steps joined by straight lines in s, so that members between two references keep their order; it is never above
p, and ood_score = 1 − smooth_p. The verdict uses the p with the guarantee.

**weight.** If a share π of the pool comes from the reference distribution, then P(own | x) = π p_known(x)/p_pool(x).
The ratio ρ(s) of the two densities is estimated by isotonic regression of "is a reference" on the score, both samples
counting as one half; π follows from what ρ typically is on the reference (Elkan, Noto, 2008: "Learning classifiers from
only positive and unlabeled data"):

    w(s) = min(1, ρ(s) / typical ρ of the reference),

typical being the mean without the largest tenth, or the median where that is smaller: a small pool can leave many
references alone at the top, where ρ says little. Where the score tells nothing ρ is constant and every weight is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wrssl.judging import Belonging

CAP = 0.9  # ρ of the reference is cut at this quantile: the top step of an isotonic fit rests on few examples


def conformal_p(score: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """p_j as above; ``known`` need not be sorted."""
    at_most = np.searchsorted(np.sort(known), score, side="right")
    p: NDArray[np.float64] = (1 + at_most) / (len(known) + 1)
    return p


def smooth_p(score: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """P with its steps joined: #{reference ≤ s}/(n + 1) at the scores of the reference, straight lines between.

    Below the lowest reference it falls like 1/(1 + distance), so that the strangest members keep their order too.
    """
    n = len(known)
    scores, counts = np.unique(known, return_counts=True)
    reached = counts.cumsum()
    # Equal references are one step of several counts: just before them p has not risen yet.
    nodes = np.stack([np.nextafter(scores, -np.inf), scores], axis=1).ravel()
    values = np.stack([reached - counts + 1, reached], axis=1).ravel()
    below = 1 / (1 + np.maximum(scores[0] - score, 0))
    p: NDArray[np.float64] = np.where(score < scores[0], below, np.interp(score, nodes, values)) / (n + 1)
    return p


def ood_score(score: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 − smooth_p, in [0, 1); ½ where there is no reference."""
    return 1 - smooth_p(score, known) if len(known) else np.full(len(score), 0.5)


@dataclass(frozen=True)
class WeightCurve:
    """w as an increasing function of the score: straight lines between nodes, constant beyond them."""

    nodes: NDArray[np.float64]
    values: NDArray[np.float64]

    def __call__(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """w(s) in [0, 1]."""
        w: NDArray[np.float64] = np.interp(score, self.nodes, self.values)
        return w


def weight_curve(known: NDArray[np.float64], pool: NDArray[np.float64]) -> WeightCurve:
    """Fit w to out-of-fold scores of the reference and of the pool."""
    from sklearn.isotonic import IsotonicRegression

    # One member more, where a reference scores highest: a ratio of densities is not known to be infinite.
    pool = np.r_[pool, max(known.max(), pool.max())]
    n, m = len(known), len(pool)
    scores, member = np.r_[known, pool], np.r_[np.ones(n), np.zeros(m)]
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, member, np.r_[np.full(n, 1 / n), np.full(m, 1 / m)])
    ratio = _odds(fitted.predict(known))
    mean = float(np.minimum(ratio, np.quantile(ratio, CAP)).mean())
    scale = max(min(mean, float(np.median(ratio))), 1e-9)
    nodes = np.asarray(fitted.X_thresholds_, dtype=np.float64)
    values = _odds(np.asarray(fitted.y_thresholds_, dtype=np.float64))
    return WeightCurve(nodes, np.clip(values / scale, 0, 1))


def belonging(score: NDArray[np.float64], known: NDArray[np.float64], curve: WeightCurve) -> Belonging:
    """p, ood_score and weight of examples with these scores.

    Args:
        score: of the examples.
        known: out-of-fold scores of the reference.
        curve: from a score to a weight.
    """
    return Belonging(conformal_p(score, known), ood_score(score, known), curve(score))


def _odds(q: NDArray[np.float64]) -> NDArray[np.float64]:
    return q / np.maximum(1 - q, 1e-9)
