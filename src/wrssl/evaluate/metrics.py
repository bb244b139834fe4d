"""Metrics: how well a score separates two groups, how much of a pool is foreign, intervals of paired differences.

**Foreign share.** For a member that belongs the p-value of ``evaluate/verdicts.py`` is uniform on (0, 1), members that
do not belong have small values. So the upper half holds half of the members that belong and hardly any other (Storey,
2002: "A direct approach to false discovery rates"):

    share = 1 − 2 · #{p > ½} / M,   p = 1 − ood_score.

Foreign members that look familiar are counted as belonging, so it is a lower bound; it has the sampling error of a mean
of M coins, and of the reference. A negative estimate is reported as 0.

**Paired interval.** For a difference that was measured on repeated random splits of the same examples. The splits share
examples, so their differences d_1 … d_R are not independent and the usual standard error is too small. With a
correlation ρ between two splits (Nadeau, Bengio, 2003: "Inference for the generalization error")

    Var(mean d) = s² · (1/R + ρ/(1 − ρ)),

s² being the sample variance. They take ρ = n_test/(n_train + n_test), the share of the examples that is held out. But
two splits have little in common where few training examples are drawn from many: on average the share n_train/n of
them. So ρ here is the smaller of the two shares. The interval is that of Student's t with R − 1 degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def auroc(score: NDArray[np.floating], positive: NDArray[np.bool_]) -> float | None:
    """P(score of a positive > score of a negative) + ½ P(equal); None where one group is empty.

    Computed from ranks, ties sharing their mean rank: U = Σ ranks of the positives − n₊(n₊ + 1)/2, AUROC = U/(n₊ n₋).
    """
    from scipy.stats import rankdata

    score, positive = np.asarray(score, dtype=np.float64), np.asarray(positive, dtype=bool)
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if n_positive == 0 or n_negative == 0:
        return None
    if np.isnan(score).any():
        return float("nan")
    _, level = np.unique(score, return_inverse=True)  # older versions of SciPy give NaN for infinite scores
    rank_sum = float(rankdata(level)[positive].sum())
    return (rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)


def fpr_at_tpr(score: NDArray[np.floating], positive: NDArray[np.bool_], tpr: float = 0.95) -> float | None:
    """The share of negatives at or above the highest threshold that catches ``tpr`` of the positives; None as above."""
    score, positive = np.asarray(score, dtype=np.float64), np.asarray(positive, dtype=bool)
    if not positive.any() or positive.all():
        return None
    caught = np.sort(score[positive])[::-1]
    needed = int(np.ceil(tpr * len(caught) - 1e-9))  # 0.55 · 100 is 55.000000000000007
    threshold = caught[max(1, needed) - 1]
    return float((score[~positive] >= threshold).mean())


def average_precision(score: NDArray[np.floating], positive: NDArray[np.bool_]) -> float | None:
    """AUPR: Σ_k (R_k − R_{k−1}) P_k over the distinct thresholds, highest first; None where one group is empty."""
    score, positive = np.asarray(score, dtype=np.float64), np.asarray(positive, dtype=bool)
    if not positive.any() or positive.all():
        return None
    order = np.argsort(-score, kind="stable")
    ordered = score[order]
    last = np.r_[ordered[1:] != ordered[:-1], True]  # equal scores are one threshold
    caught, taken = positive[order].cumsum()[last], np.flatnonzero(last) + 1
    return float((np.diff(caught, prepend=0) * caught / taken).sum() / positive.sum())


def foreign_share(ood_score: NDArray[np.float64]) -> float | None:
    """The share above; None where no member was compared with anything (every score ½, or no member)."""
    score = np.asarray(ood_score, dtype=np.float64)
    if len(score) == 0 or bool((score == 0.5).all()):
        return None
    return max(0.0, 1.0 - 2.0 * float((score < 0.5).mean()))


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval."""

    mean: float
    low: float
    high: float


def correlation(train: int, test: int, total: int) -> float:
    """ρ of two random splits of ``total`` examples with ``train`` in one part and ``test`` in another."""
    return min(test / (train + test), train / total)


def paired_interval(differences: ArrayLike, rho: float, level: float = 0.95) -> Interval:
    """The mean difference and its interval.

    Args:
        differences: one per split, at least two.
        rho: the correlation of two splits.
        level: of confidence.
    """
    from scipy.stats import t

    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError("an interval needs at least two differences")
    mean, variance = float(d.mean()), float(d.var(ddof=1))
    half = float(t.ppf(0.5 + level / 2, len(d) - 1)) * math.sqrt(variance * (1 / len(d) + rho / (1 - rho)))
    return Interval(mean, mean - half, mean + half)
