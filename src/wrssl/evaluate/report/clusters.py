"""What the clusters of the pool look like, and what they weigh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wrssl.evaluate.report.selection import CLUSTERS, PER_CLUSTER, evenly

if TYPE_CHECKING:
    import pandas as pd


def describe(verdicts: pd.DataFrame, order: NDArray[np.int64]) -> dict[str, Any] | None:
    """A row per cluster, lowest mean weight first; None where the pool has no clusters.

    A cluster is shown by members at even distances in the order of weights, so that a mixed one looks mixed.

    Args:
        verdicts: the table.
        order: of its rows, see ``selection.py``.
    """
    if verdicts["cluster"].isna().any():
        return None
    cluster = verdicts["cluster"].to_numpy(dtype=np.int32)
    weight = verdicts["weight"].to_numpy(dtype=np.float64)
    is_word = {word: (verdicts["verdict"] == word).to_numpy(dtype=bool) for word in ("keep", "doubt", "drop")}
    truth = None if verdicts["is_ood"].isna().any() else verdicts["is_ood"].to_numpy(dtype=np.float64)
    by_cluster = order[np.argsort(cluster[order], kind="stable")]  # within a cluster still by weight
    cluster = cluster[by_cluster]  # sorted now: np.unique would sort it once more, with a number for every member
    starts = np.flatnonzero(np.diff(cluster, prepend=cluster[:1] - 1))
    names = cluster[starts]
    rows = []
    for name, members in zip(names.tolist(), np.split(by_cluster, starts[1:]), strict=True):
        rows.append(
            {
                "cluster": name,
                "size": len(members),
                "mean_weight": float(weight[members].mean()),
                **{word: int(chosen[members].sum()) for word, chosen in is_word.items()},
                "foreign": None if truth is None else int(truth[members].sum()),
                "members": members[evenly(len(members), PER_CLUSTER)].tolist(),
            }
        )
    rows.sort(key=lambda row: (row["mean_weight"], row["cluster"]))
    half = CLUSTERS // 2
    shown = rows if len(rows) <= CLUSTERS else [*rows[:half], *rows[-half:]]
    return {"number": len(rows), "rows": shown}
