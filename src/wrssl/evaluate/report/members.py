"""The pool in numbers, and its members one by one where there is room for them.

As long as the members take at most ``BUDGET`` characters, all of them are in the page, and the list of kept members
that a browser makes is complete. Of a larger pool the page holds those that are shown, and says where the others are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wrssl.evaluate.foreign import foreign_share
from wrssl.evaluate.report.packing import SCALE, down, front_coded, near, packed, script_json
from wrssl.evaluate.report.plain import short, text

if TYPE_CHECKING:
    import pandas as pd

WORDS = ("keep", "doubt", "drop")
BINS = 20
CHUNK = 100_000
NEAR = 1e-5  # weights come from float32: so close to the end of a bin is at the end
BUDGET = 2_000_000
MOST_COMPLETE = 200_000  # more would fit into no budget; do not even try


def summary(verdicts: pd.DataFrame) -> dict[str, Any]:
    """Counts over the whole pool: verdicts, weights in bins, how many each threshold keeps, and the truth if known."""
    weight = verdicts["weight"].to_numpy(dtype=np.float64)
    is_word = {word: (verdicts["verdict"] == word).to_numpy(dtype=bool) for word in WORDS}
    steps, bins = np.zeros(SCALE + 1, dtype=np.int64), {word: np.zeros(BINS, dtype=np.int64) for word in WORDS}
    for start in range(0, len(weight), CHUNK):  # in parts, since each number below takes eight bytes
        rows = slice(start, start + CHUNK)
        place = np.clip((weight[rows] * BINS + NEAR).astype(np.int64), 0, BINS - 1)
        steps += np.bincount(down(weight[rows]), minlength=SCALE + 1)
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


def _truth(verdicts: pd.DataFrame, is_word: dict[str, NDArray[np.bool_]]) -> dict[str, Any] | None:
    if verdicts["is_ood"].isna().any():
        return None
    foreign = verdicts["is_ood"].to_numpy(dtype=np.float64) > 0
    table = {
        word: {"own": int((chosen & ~foreign).sum()), "foreign": int((chosen & foreign).sum())}
        for word, chosen in is_word.items()
    }
    return {"foreign": int(foreign.sum()), **table}


def listed(verdicts: pd.DataFrame, classes: list[str], shown: NDArray[np.int64]) -> dict[str, Any]:
    """The members that the page holds, in pool order.

    Args:
        verdicts: the table.
        classes: the names of the classes.
        shown: places of the members that must be there.
    """
    everybody = np.arange(len(verdicts))
    if len(verdicts) <= MOST_COMPLETE:
        whole = _columns(verdicts, classes, everybody, exact=True)
        if len(script_json(whole)) <= BUDGET:
            return {"complete": True, **whole}
    return {"complete": False, **_columns(verdicts, classes, np.sort(shown), exact=False)}


def _columns(verdicts: pd.DataFrame, classes: list[str], rows: NDArray[np.int64], exact: bool) -> dict[str, Any]:
    part = verdicts.iloc[rows]
    numbers = {name: part[name].to_numpy(dtype=np.float64) for name in ("weight", "ood_score", "confidence")}
    codes = {name: code for code, name in enumerate(WORDS)}
    label_of = {name: code for code, name in enumerate(classes)}
    ids = part["id"].tolist()
    return {
        "count": len(rows),
        # Row numbers as names need no room at all.
        "ids": None
        if exact and ids == list(range(len(ids)))
        else front_coded([text(i) if exact else short(i) for i in ids]),
        "weight": packed(down(numbers["weight"])),
        "ood_score": packed(near(numbers["ood_score"])),
        "confidence": packed(near(numbers["confidence"])),
        "verdict": packed(np.array([codes[word] for word in part["verdict"]])),
        "label": packed(np.array([label_of[text(name)] for name in part["pseudo_label"].tolist()])),
        # One more than the cluster; 0 where there is none.
        "cluster": packed(part["cluster"].to_numpy(dtype=np.float64, na_value=-1).astype(np.int64) + 1),
        # 0 own, 1 foreign, 2 unknown.
        "truth": packed(part["is_ood"].to_numpy(dtype=np.float64, na_value=2).astype(np.int64)),
    }
