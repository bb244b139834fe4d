"""One row per pool member: does it help (weight), does it belong (ood_score), and what to do with it (verdict).

**ood_score** is one minus a conformal p-value. Where the weighting itself judges the pool (``wrssl.judging.PoolJudge``;
``wr`` and ``prior`` compare the pool with the labels), the p-value is that of its judgment. Otherwise the strangeness
of an example is its energy s = −log Σ_c exp z_c; with that of n reference examples that were not trained on (the
validation set),

    p_j = (1 + #{reference: s ≥ s_j}) / (n + 1),   ood_score_j = 1 − p_j.

For a member that comes from the reference distribution P(p ≤ a) ≤ a, whatever the score is worth, as long as it was
found without the reference: at most that share of members that belong gets the verdict ``drop``. With fewer than
1/rate − 1 references p is above the rate always, and nothing is dropped. The energy depends weakly on the validation
set, which chose the checkpoint; without one the labeled examples are the reference, the network was trained on them,
and p is too small.

    drop    p ≤ rate (the false-drop rate, default 5 %)
    doubt   p ≤ 4·rate, or a weight below ½
    keep    everything else

**Memory.** The table takes 36 bytes per member, plus the ids where they are more than numbers, so that a table of ten
million fits into memory: logits come in parts and are released when they have been judged. Whole numbers have the
smallest type that holds them, not below int16, so that a sum or a difference of a few does not overflow. Words are
codes of one or two bytes into a list of the words (``pandas.Categorical``), which compare, sort and print as the words
do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wrssl.config import FitConfig
from wrssl.priors import conformal_p

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd

    from wrssl.judging import Belonging

FALSE_DROP_RATE = FitConfig.false_drop_rate  # the default of the option
VERDICTS = np.array(["doubt", "drop", "keep"], dtype=object)  # in this order: a table is sorted by it as by the words
DOUBT, DROP, KEEP = range(3)
WHOLE = (np.int16, np.int32, np.int64, np.uint64)


def energy(logits: Tensor) -> Tensor:
    """The strangeness s = −log Σ_c exp z_c, shape (N,): high where no class is recognized."""
    return -logits.logsumexp(1)


def verdict_of(p: NDArray[np.float64], weight: NDArray[np.float64], rate: float) -> NDArray[np.object_]:
    """``drop``, ``doubt`` or ``keep`` for each member, by the rule above."""
    verdicts: NDArray[np.object_] = VERDICTS[verdict_codes(p, weight, rate)]
    return verdicts


def verdict_codes(p: NDArray[np.float64], weight: NDArray[np.float64], rate: float) -> NDArray[np.int8]:
    """The same as indices into ``VERDICTS``."""
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
    belonging: Callable[[slice], Belonging | None] | None = None,
) -> pd.DataFrame:
    """The table of verdicts, in pool order.

    Args:
        ids: a name per member; None for the row numbers.
        logits: of the pool, (M, C), or parts of it in order.
        reference: logits of the reference examples.
        weight: the final weights, (M,).
        is_ood: the truth where known, (M,).
        cluster: the cluster of each member where there are clusters, (M,).
        classes: the names of the classes.
        rate: the false-drop rate.
        belonging: the judgment of the weighting about these members, in place of the energy; None, or a function that
            returns None, leaves the judgment to the energy.
    """
    import pandas as pd

    size = len(weight)
    score, confidence = np.empty(size), np.empty(size)
    verdict, label = np.empty(size, dtype=np.int8), label_column(np.asarray(classes), size)
    usual, start = -energy(reference).double().numpy(), 0
    for part in (logits,) if isinstance(logits, Tensor) else logits:
        rows = slice(start, start := start + len(part))
        judged = belonging(rows) if belonging is not None else None
        if judged is None:
            p = conformal_p(-energy(part).double().numpy(), usual)
            score[rows] = 1 - p
        else:
            p, score[rows] = judged.p, judged.ood_score
        best = part.softmax(1).max(1)
        verdict[rows], confidence[rows] = verdict_codes(p, weight[rows], rate), best.values.numpy()
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


def smallest_whole(low: int, high: int, at_least: type[np.integer[Any]] = np.int16) -> np.dtype[Any]:
    """The first of ``at_least``, int16, int32, int64, uint64 that holds both numbers."""
    kinds: tuple[type[np.integer[Any]], ...] = (at_least, *WHOLE)
    fits = (kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return np.dtype(next(fits))


def identifiers(ids: Sequence[Any] | NDArray[Any] | None, size: int) -> Any:
    """A fresh column of ids; numbers in a row and arrays take no Python object per member."""
    numbers = range(size) if ids is None else ids
    if isinstance(numbers, range):
        ends = (numbers[0], numbers[-1]) if numbers else (0, 0)
        kind = smallest_whole(min(ends), max(ends), np.int32)
        return np.arange(numbers.start, numbers.stop, numbers.step, dtype=kind)
    if isinstance(numbers, np.ndarray):
        return numbers.copy()
    import pandas as pd

    # As objects: with pyarrow pandas keeps text as UTF-8, which not every name of a file is.
    return pd.Series(list(numbers), dtype=object) if any(map(_is_no_utf8, numbers)) else list(numbers)


def _is_no_utf8(name: Any) -> bool:
    return isinstance(name, str) and not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name)


def whole_numbers(values: Tensor | None, size: int, at_least: type[np.signedinteger[Any]]) -> Any:
    """Whole numbers as a column; unknown ones as the nullable type of that width."""
    import pandas as pd

    if values is None:
        return pd.arrays.IntegerArray(np.zeros(size, dtype=at_least), np.ones(size, dtype=bool))
    if not len(values):
        return np.zeros(0, dtype=at_least)
    return values.numpy().astype(smallest_whole(int(values.min()), int(values.max()), at_least))


def coded(codes: NDArray[Any], words: NDArray[Any]) -> Any:
    """A column of words, given as indices into a list of words."""
    import pandas as pd

    return pd.Categorical.from_codes(codes, categories=pd.Index(words), validate=False)


@dataclass(frozen=True)
class LabelColumn:
    """The name of a class for every member, filled part by part.

    Attributes:
        names: of the classes.
        values: the names themselves, or indices into ``names`` where they are words.
    """

    names: NDArray[Any]
    values: NDArray[Any]

    def fill(self, rows: slice, indices: NDArray[np.int64]) -> None:
        """Set the classes of these members, given by number."""
        self.values[rows] = indices if self.names.dtype.kind in "USO" else self.names[indices]

    def column(self) -> Any:
        """The column for pandas."""
        return coded(self.values, self.names) if self.names.dtype.kind in "USO" else self.values


def label_column(names: NDArray[Any], size: int) -> LabelColumn:
    """An empty column of classes with these names."""
    kind = names.dtype
    if kind.kind in "USO":
        kind = np.dtype(np.int8) if len(names) <= np.iinfo(np.int8).max else smallest_whole(0, len(names))
    elif kind.kind in "iu":
        kind = smallest_whole(int(names.min()), int(names.max()))
    return LabelColumn(names, np.empty(size, dtype=kind))
