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
    cluster = verdicts["cluster"].to_numpy(dtype=np.int64)
    weight, verdict = verdicts["weight"].to_numpy(dtype=np.float64), verdicts["verdict"].to_numpy()
    truth = None if verdicts["is_ood"].isna().any() else verdicts["is_ood"].to_numpy(dtype=np.float64)
    by_cluster = order[np.argsort(cluster[order], kind="stable")]  # within a cluster still by weight
    names, starts = np.unique(cluster[by_cluster], return_index=True)
    rows = []
    for name, members in zip(names.tolist(), np.split(by_cluster, starts[1:]), strict=True):
        rows.append(
            {
                "cluster": name,
                "size": len(members),
                "mean_weight": float(weight[members].mean()),
                **{word: int((verdict[members] == word).sum()) for word in ("keep", "doubt", "drop")},
                "foreign": None if truth is None else int(truth[members].sum()),
                "members": members[evenly(len(members), PER_CLUSTER)].tolist(),
            }
        )
    rows.sort(key=lambda row: (row["mean_weight"], row["cluster"]))
    half = CLUSTERS // 2
    shown = rows if len(rows) <= CLUSTERS else [*rows[:half], *rows[-half:]]
    return {"number": len(rows), "rows": shown}
