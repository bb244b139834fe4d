"""One row per pool member: does it help (weight), does it belong (ood_score), and what to do with it (verdict).

ood_score is a conformal p-value turned round. The strangeness of an example is its energy s = −log Σ_c exp z_c; with
the strangeness of n reference examples that were not trained on (the validation set),

    p_j = (1 + #{reference: s ≥ s_j}) / (n + 1),   ood_score_j = 1 − p_j.

For a member that comes from the reference distribution P(p ≤ a) ≤ a, whatever the network, as long as the network was
chosen without the reference: at most that share of members that belong gets the verdict ``drop``. The validation set
drove the weights and chose the checkpoint, a weak dependence. Where there is none the labelled examples are the
reference; the network was trained on them, so that p is too small then.

    drop    p ≤ rate (the false-drop rate, default 5 %)
    doubt   p ≤ 4·rate, or a weight below ½
    keep    everything else
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

FALSE_DROP_RATE = 0.05


def energy(logits: Tensor) -> Tensor:
    """The strangeness s = −log Σ_c exp z_c: high where no class is recognised."""
    return -logits.logsumexp(1)


def conformal_p(strangeness: Tensor, reference: Tensor) -> NDArray[np.float64]:
    """p_j = (1 + #{reference ≥ s_j}) / (n + 1)."""
    ordered = np.sort(reference.double().numpy())
    at_least = len(ordered) - np.searchsorted(ordered, strangeness.double().numpy(), side="left")
    p: NDArray[np.float64] = (1 + at_least) / (len(ordered) + 1)
    return p


def verdict_of(p: NDArray[np.float64], weight: NDArray[np.float64], rate: float) -> NDArray[np.str_]:
    """``drop``, ``doubt`` or ``keep`` for each member, by the rule above."""
    doubt = (p <= 4 * rate) | (weight < 0.5)
    return np.where(p <= rate, "drop", np.where(doubt, "doubt", "keep"))


def verdict_table(
    ids: Sequence[Any],
    logits: Tensor,
    reference: Tensor,
    weight: NDArray[np.float64],
    is_ood: Tensor | None,
    cluster: Tensor | None,
    classes: NDArray[Any],
    rate: float = FALSE_DROP_RATE,
) -> pd.DataFrame:
    """The table of verdicts, in pool order.

    Args:
        ids: a name per member.
        logits: of the pool, (M, C).
        reference: logits of the reference examples.
        weight: the final weights.
        is_ood: the truth where known.
        cluster: the cluster of each member where there are clusters.
        classes: the names of the classes.
        rate: the false-drop rate.
    """
    import pandas as pd

    p = conformal_p(energy(logits), energy(reference))
    confidence, label = logits.softmax(1).max(1)
    size = len(logits)
    return pd.DataFrame(
        {
            "id": list(ids),
            "weight": weight,
            "ood_score": 1 - p,
            "is_ood": pd.array([None] * size, dtype="Int8") if is_ood is None else is_ood.numpy().astype(np.int8),
            "verdict": verdict_of(p, weight, rate),
            "cluster": pd.array([None] * size, dtype="Int32") if cluster is None else cluster.to(torch.int32).numpy(),
            "pseudo_label": np.asarray(classes)[label.numpy()],
            "confidence": confidence.double().numpy(),
        }
    )
