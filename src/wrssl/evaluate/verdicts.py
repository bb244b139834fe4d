"""One row per pool member: does it help (weight), does it belong (ood_score), and what to do with it (verdict).

ood_score is a conformal p-value turned round. Where the weighting has compared the pool with the labels (``wr``,
``prior``), the p-value is that of its score (``wrssl.priors.calibrate``). For every other weighting the strangeness of
an example is its energy s = −log Σ_c exp z_c; with that of n reference examples that were not trained on (the
validation set),

    p_j = (1 + #{reference: s ≥ s_j}) / (n + 1),   ood_score_j = 1 − p_j.

For a member that comes from the reference distribution P(p ≤ a) ≤ a, whatever the score is worth, as long as it was
found without the reference: at most that share of members that belong gets the verdict ``drop``. With fewer than
1/rate − 1 references p is above the rate always, and nothing is dropped. The energy depends weakly on the validation
set, which chose the checkpoint; without one the labelled examples are the reference, the network was trained on them,
and p is too small.

    drop    p ≤ rate (the false-drop rate, default 5 %)
    doubt   p ≤ 4·rate, or a weight below ½
    keep    everything else

The table takes 36 bytes per member, plus the ids where they are more than numbers: the logits come in parts and go when
they have been judged, words are categories of one or two bytes, and whole numbers have the smallest type from int16 on
that holds them (``evaluate/columns.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wrssl.api import OptionError
from wrssl.evaluate.columns import coded, identifiers, label_column, whole_numbers
from wrssl.priors import conformal_p

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd

    Belonging = Callable[[slice], tuple[NDArray[np.float64], NDArray[np.float64]] | None]

FALSE_DROP_RATE = 0.05
VERDICTS = np.array(["doubt", "drop", "keep"], dtype=object)  # in this order: a table is sorted by it as by the words
DOUBT, DROP, KEEP = range(3)


def check_rate(rate: float) -> None:
    """A share of members that belong; 0 drops nobody."""
    if not 0 <= rate <= 0.5:
        raise OptionError(f"false_drop_rate is a share of members that belong, from 0 to 0.5, not {rate}.")


def energy(logits: Tensor) -> Tensor:
    """The strangeness s = −log Σ_c exp z_c: high where no class is recognised."""
    return -logits.logsumexp(1)


def verdict_of(p: NDArray[np.float64], weight: NDArray[np.float64], rate: float) -> NDArray[np.object_]:
    """``drop``, ``doubt`` or ``keep`` for each member, by the rule above."""
    verdicts: NDArray[np.object_] = VERDICTS[verdict_codes(p, weight, rate)]
    return verdicts


def verdict_codes(p: NDArray[np.float64], weight: NDArray[np.float64], rate: float) -> NDArray[np.int8]:
    """The same as places in ``VERDICTS``."""
    doubt = (p <= 4 * rate) | (weight < 0.5)
    codes: NDArray[np.int8] = np.where(p <= rate, DROP, np.where(doubt, DOUBT, KEEP)).astype(np.int8)
    return codes


def verdict_table(
    ids: Sequence[Any] | NDArray[Any] | None,
    logits: Tensor | Iterable[Tensor],
    reference: Tensor,
    weight: NDArray[np.float64],
    is_ood: Tensor | None,
    cluster: Tensor | None,
    classes: NDArray[Any],
    rate: float = FALSE_DROP_RATE,
    belonging: Belonging | None = None,
) -> pd.DataFrame:
    """The table of verdicts, in pool order.

    Args:
        ids: a name per member; None for the row numbers.
        logits: of the pool, (M, C), or parts of it in order.
        reference: logits of the reference examples.
        weight: the final weights.
        is_ood: the truth where known.
        cluster: the cluster of each member where there are clusters.
        classes: the names of the classes.
        rate: the false-drop rate.
        belonging: p-value and ood_score of these members by a better judge than the energy; None from one that has
            no opinion.
    """
    import pandas as pd

    size = len(weight)
    score, confidence = np.empty(size), np.empty(size)
    verdict, label = np.empty(size, dtype=np.int8), label_column(np.asarray(classes), size)
    usual, start = -energy(reference).double().numpy(), 0
    for part in (logits,) if isinstance(logits, Tensor) else logits:
        rows = slice(start, start := start + len(part))
        known = belonging(rows) if belonging is not None else None
        if known is None:
            p = conformal_p(-energy(part).double().numpy(), usual)
            known = p, 1 - p
        best = part.softmax(1).max(1)
        score[rows], verdict[rows] = known[1], verdict_codes(known[0], weight[rows], rate)
        confidence[rows] = best.values.numpy()
        label.fill(rows, best.indices.numpy())
    if start != size:
        raise ValueError(f"There are logits of {start} members and weights of {size}.")
    columns = {
        "id": identifiers(ids, size),
        "weight": weight.copy(),
        "ood_score": score,
        "is_ood": whole_numbers(is_ood, size, np.int8),
        "verdict": coded(verdict, VERDICTS),
        "cluster": whole_numbers(cluster, size, np.int16),
        "pseudo_label": label.column(),
        "confidence": confidence,
    }
    return pd.DataFrame(columns, copy=False)  # all of them are fresh
