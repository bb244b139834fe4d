"""How well a score tells two groups apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def auroc(score: NDArray[np.floating], positive: NDArray[np.bool_]) -> float | None:
    """P(score of a positive > score of a negative) + ½ P(equal); None where one group is empty.

    Computed from ranks, ties sharing their mean rank: U = Σ ranks of the positives − n₊(n₊ + 1)/2, AUROC = U/(n₊ n₋).
    """
    from scipy.stats import rankdata

    score, positive = np.asarray(score, dtype=np.float64), np.asarray(positive, dtype=bool)
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if n_positive == 0 or n_negative == 0:
        return None
    rank_sum = float(rankdata(score)[positive].sum())
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
