"""The pool as the page holds it: counts, the members that are shown, clusters, and columns in little space.

**Shown.** Of a large pool the members at both ends of the weights have a picture, those that stand for a cluster, and
the others at even distances. Members are ordered by weight; equal weights by ood_score, the highest first; equal scores
by their place in the pool.

**Listed.** As long as all members take at most ``BUDGET`` characters, they are in the page, and the list of kept
members that a browser makes is complete. Of a larger pool the page holds those that are shown, and says where the
others are.

**Packed.** Columns are whole numbers as base64, names leave out what they share with the one before. A weight is stored
as the whole number q with q / 10,000 ≤ w < (q + 1) / 10,000. It is rounded down, so that for a threshold t of at most
four decimals q ≥ 10,000 t holds exactly where w ≥ t does: a list of kept members that is made from q is the list that
the full table would give.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wrssl.evaluate.metrics import foreign_share
from wrssl.evaluate.report.text import as_text, shortened

if TYPE_CHECKING:
    import pandas as pd

WORDS = ("keep", "doubt", "drop")  # a table may have others, which come after these
BINS = 20
CHUNK = 100_000
NEAR = 1e-5  # weights come from float32: so close to the end of a bin is at the end
BUDGET = 2_000_000
MOST_COMPLETE = 200_000  # more would fit into no budget; do not even try
MOST = 1_000  # members with a picture
ENDS = 200  # of them at each end
PER_CLUSTER = 6
CLUSTERS = 40  # that are described; of more, half from each end of the mean weights
SCALE = 10_000


def summarize(verdicts: pd.DataFrame) -> dict[str, Any]:
    """Counts over the whole pool: verdicts, weights in bins, how many each threshold keeps, and the truth if known."""
    weight = verdicts["weight"].to_numpy(dtype=np.float64)
    is_word = _is_word(verdicts)
    steps, bins = np.zeros(SCALE + 1, dtype=np.int64), {word: np.zeros(BINS, dtype=np.int64) for word in is_word}
    for start in range(0, len(weight), CHUNK):  # in parts, since each number below takes eight bytes
        rows = slice(start, start + CHUNK)
        place = np.clip((weight[rows] * BINS + NEAR).astype(np.int64), 0, BINS - 1)
        steps += np.bincount(rounded_down(weight[rows]), minlength=SCALE + 1)
        for word, chosen in is_word.items():
            bins[word] += np.bincount(place[chosen[rows]], minlength=BINS)
    at_least = np.cumsum(steps[::-1])[::-1]
    return {
        "size": len(weight),
        "verdicts": {word: int(chosen.sum()) for word, chosen in is_word.items()},
        "mean_weight": float(weight.mean()),
        "lowest_weight": float(weight.min()),
        "highest_weight": float(weight.max()),
        "foreign_share": foreign_share(verdicts["ood_score"].to_numpy(dtype=np.float64)),
        "histogram": {word: counts.tolist() for word, counts in bins.items()},
        "kept_at": at_least[:: SCALE // 100].tolist(),
        "truth": _truth(verdicts, is_word),
    }


def words_of(verdicts: pd.DataFrame) -> list[str]:
    """The verdicts that there may be: the three, and any other word of the table."""
    return [*WORDS, *sorted(set(verdicts["verdict"].unique().tolist()) - set(WORDS))]


def _is_word(verdicts: pd.DataFrame) -> dict[str, NDArray[np.bool_]]:
    return {word: (verdicts["verdict"] == word).to_numpy(dtype=bool) for word in words_of(verdicts)}


def _truth(verdicts: pd.DataFrame, is_word: dict[str, NDArray[np.bool_]]) -> dict[str, Any] | None:
    if verdicts["is_ood"].isna().any():
        return None
    foreign = verdicts["is_ood"].to_numpy(dtype=np.float64) > 0
    table = {
        word: {"own": int((chosen & ~foreign).sum()), "foreign": int((chosen & foreign).sum())}
        for word, chosen in is_word.items()
    }
    return {"foreign": int(foreign.sum()), **table}


@dataclass(frozen=True)
class Shown:
    """The members that are shown.

    Attributes:
        members: their places in the pool, lowest weight first.
        lowest: how many of them are there for their low weight.
        highest: how many for their high weight.
    """

    members: NDArray[np.int64]
    lowest: int
    highest: int


def order_by_weight(weight: NDArray[np.float64], score: NDArray[np.float64]) -> NDArray[np.int64]:
    """The members in the order above."""
    return np.lexsort((-score, weight)).astype(np.int64, copy=False)  # stable: of equals the first comes first


def evenly(length: int, number: int) -> NDArray[np.int64]:
    """``number`` places of ``length``, at even distances, both ends among them; all of them if there are no more."""
    if number >= length:
        return np.arange(length)
    return np.unique(np.rint(np.linspace(0, length - 1, number)).astype(np.int64))


def choose_shown(order: NDArray[np.int64], montages: list[NDArray[np.int64]]) -> Shown:
    """At most ``MOST`` members; all of them in a pool of that size.

    Args:
        order: of the whole pool, from ``order_by_weight``.
        montages: members that stand for a cluster, and are shown in any case.
    """
    size = len(order)
    if size <= MOST:
        return Shown(order, size, 0)
    # By place in the order.
    wanted = np.isin(order, np.concatenate(montages)) if montages else np.zeros(size, dtype=bool)
    wanted[:ENDS] = wanted[size - ENDS :] = True
    left = MOST - int(wanted.sum())
    between = np.flatnonzero(~wanted)
    wanted[between[evenly(len(between), left)]] = True
    return Shown(order[wanted], ENDS, ENDS)


def describe_clusters(verdicts: pd.DataFrame, order: NDArray[np.int64]) -> dict[str, Any] | None:
    """A row per cluster, lowest mean weight first; None where the pool has no clusters.

    A cluster is shown by members at even distances in the order of weights, so that a mixed one looks mixed.

    Args:
        verdicts: the table.
        order: of its rows, from ``order_by_weight``.
    """
    if verdicts["cluster"].isna().any():
        return None
    cluster = verdicts["cluster"].to_numpy(dtype=np.int32)
    weight = verdicts["weight"].to_numpy(dtype=np.float64)
    is_word = _is_word(verdicts)
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


def list_members(verdicts: pd.DataFrame, classes: list[str], shown: NDArray[np.int64]) -> dict[str, Any]:
    """The members that the page holds, in pool order.

    Args:
        verdicts: the table.
        classes: the names of the classes.
        shown: places of the members that must be there.
    """
    if len(verdicts) <= MOST_COMPLETE:
        whole = _columns(verdicts, classes, np.arange(len(verdicts)), exact=True)
        if len(script_json(whole)) <= BUDGET:
            return {"complete": True, **whole}
    return {"complete": False, **_columns(verdicts, classes, np.sort(shown), exact=False)}


def _columns(verdicts: pd.DataFrame, classes: list[str], rows: NDArray[np.int64], exact: bool) -> dict[str, Any]:
    part = verdicts.iloc[rows]
    numbers = {name: part[name].to_numpy(dtype=np.float64) for name in ("weight", "ood_score", "confidence")}
    codes = {name: code for code, name in enumerate(words_of(verdicts))}
    label_of = {name: code for code, name in enumerate(classes)}
    ids = part["id"].tolist()
    return {
        "count": len(rows),
        # Row numbers as names need no room at all.
        "ids": None
        if exact and ids == list(range(len(ids)))
        else front_coded([as_text(i) if exact else shortened(i) for i in ids]),
        "weight": packed(rounded_down(numbers["weight"])),
        "ood_score": packed(rounded(numbers["ood_score"])),
        "confidence": packed(rounded(numbers["confidence"])),
        "verdict": packed(np.array([codes[word] for word in part["verdict"]])),
        "label": packed(np.array([label_of[as_text(name)] for name in part["pseudo_label"].tolist()])),
        # One more than the cluster; 0 where there is none.
        "cluster": packed(part["cluster"].to_numpy(dtype=np.float64, na_value=-1).astype(np.int64) + 1),
        # 0 belongs, 1 does not belong, 2 unknown.
        "truth": packed(part["is_ood"].to_numpy(dtype=np.float64, na_value=2).astype(np.int64)),
    }


def rounded_down(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    """The whole numbers q above, for values in [0, 1]."""
    q = np.floor(values * SCALE)
    # 0.29 · 10,000 is 2899.9999999999995: compare with the quotients, which are the nearest numbers to the decimals.
    q = np.where((q + 1) / SCALE <= values, q + 1, q)
    q = np.where(q / SCALE > values, q - 1, q)
    return np.clip(q, 0, SCALE).astype(np.uint16)


def rounded(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    """The nearest whole number of ten thousandths, for values that are only displayed and sorted by."""
    return np.clip(np.rint(np.nan_to_num(values) * SCALE), 0, SCALE).astype(np.uint16)


def packed(values: NDArray[Any]) -> dict[str, Any]:
    """Whole numbers, little-endian, one or two bytes each."""
    size = 1 if len(values) == 0 or int(values.max()) < 256 else 2
    raw = values.astype("<u1" if size == 1 else "<u2").tobytes()
    return {"bytes": size, "data": base64.b64encode(raw).decode("ascii")}


def unpacked(column: dict[str, Any]) -> NDArray[np.int64]:
    """Inverse of ``packed``."""
    raw = base64.b64decode(column["data"])
    return np.frombuffer(raw, "<u1" if column["bytes"] == 1 else "<u2").astype(np.int64)


def front_coded(names: Sequence[str]) -> list[int | str]:
    """For each name, how many characters it takes over from the one before, and the rest.

    Characters are counted as JavaScript does, in units of UTF-16, since a browser puts the names together again.
    """
    coded: list[int | str] = []
    before = ""
    for name in names:
        shared = name[: _shared(before, name)]
        coded += [len(shared.encode("utf-16-le", "surrogatepass")) // 2, name[len(shared) :]]
        before = name
    return coded


def names_of(coded: list[int | str] | None, number: int) -> list[str]:
    """Inverse of ``front_coded``, as a browser does it; without a list, the names are the numbers from 0 on."""
    if coded is None:
        return [str(k) for k in range(number)]
    names, before = [], ""
    for taken, rest in zip(coded[::2], coded[1::2], strict=True):
        kept = before.encode("utf-16-le", "surrogatepass")[: 2 * int(taken)].decode("utf-16-le", "surrogatepass")
        before = f"{kept}{rest}"
        names.append(before)
    return names


def _shared(one: str, other: str) -> int:
    """Length of the longest common beginning."""
    shorter = min(len(one), len(other))
    return next((k for k in range(shorter) if one[k] != other[k]), shorter)


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or open a comment."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return written
