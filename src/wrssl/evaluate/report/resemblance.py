"""What the page shows of a run in an embedding: the items themselves, a map, and which labels each member is near.

**On the map** are at most ``MAPPED`` members of the pool and ``LABELS`` labeled examples. The members are those that
have a picture or a text in the page, and others at even distances in the order of weights; the labels are at even
distances in the order of classes, so that each class has its share.

**Of labeled examples** the page knows those on the map and those that are near a member that is shown. The first
``PICTURED`` of them have a picture or a text: the ones on the map, then those that are near most members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wrssl.data import IMAGE, TEXT, Items, Scenario
from wrssl.evaluate.report.excerpts import excerpts
from wrssl.evaluate.report.layout import place
from wrssl.evaluate.report.neighbors import directions, nearest, rows_at
from wrssl.evaluate.report.pool import evenly, packed
from wrssl.evaluate.report.text import as_text, shortened
from wrssl.evaluate.report.thumbnails import sheet, sheet_of_items

MAPPED, LABELS = 1_500, 500
PICTURED = 1_000
FINE = 10_000  # steps of a coordinate, and of a cosine from −1 to 1
REASON = 300  # characters
ABSENT: dict[str, Any] = {"embedding": None, "texts": None, "labeled": None, "neighbors": None, "map": None}


def describe_embedding(
    scenario: Scenario, order: NDArray[np.int64], shown: NDArray[np.int64], complete: bool
) -> dict[str, Any]:
    """The parts of the page that need rows or items: ``sheet``, and those of ``ABSENT``.

    Args:
        scenario: the data.
        order: of the pool, from ``order_by_weight``.
        shown: the members that are shown.
        complete: whether the page holds all members, so that others can be on the map.
    """
    made = scenario.embedding
    if made is None:
        return {**ABSENT, "sheet": sheet(scenario.unlabeled, shown.tolist())}
    y = scenario.labeled[1].numpy()
    members = choose_members(order, shown) if complete else shown
    labels = choose_labels(y)
    of_members = directions(rows_at(scenario.unlabeled, members), scenario.center)
    near, cosine = nearest(of_members[: len(shown)], scenario.labeled[0], scenario.center)
    labeled = choose_labeled(labels, near)
    place_of = np.empty(len(y), dtype=np.int64)
    place_of[labeled] = np.arange(len(labeled))
    of_labels = directions(rows_at(scenario.labeled[0], labels), scenario.center)
    points, way = place(torch.cat([of_members, of_labels]).numpy())
    x, vertical = np.rint(points * FINE).astype(np.int64).T
    return {
        "embedding": {
            "name": as_text(made.name),
            "why": shortened(made.why, REASON),
            "kind": None if made.items is None else made.items.kind,
            "columns": int(scenario.input_shape[0]),
        },
        "labeled": {
            "size": len(y),
            "rows": labeled.tolist(),
            "label": packed(y[labeled]),
            "pictured": min(PICTURED, len(labeled)),
        },
        "neighbors": {
            "number": near.shape[1],
            "place": packed(place_of[near].ravel()),
            "cosine": packed(np.rint((cosine.ravel() + 1) / 2 * FINE).astype(np.int64)),
        },
        "map": {
            "way": way,
            "members": members.tolist(),
            "labels": len(labels),
            "x": packed(x),
            "y": packed(vertical),
        },
        **look(made.items, shown, labeled[:PICTURED]),
    }


def choose_members(order: NDArray[np.int64], shown: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those on the map: the ones that are shown, then others."""
    others = order[~np.isin(order, shown)]
    return np.concatenate([shown, others[evenly(len(others), max(0, MAPPED - len(shown)))]])


def choose_labels(y: NDArray[np.int64]) -> NDArray[np.int64]:
    """The labeled rows on the map, in order of their classes."""
    by_class: NDArray[np.int64] = np.argsort(y, kind="stable")
    return by_class[evenly(len(y), LABELS)]


def choose_labeled(labels: NDArray[np.int64], near: NDArray[np.int64]) -> NDArray[np.int64]:
    """The labeled rows that the page knows: those on the map, then the others that are near a member.

    Args:
        labels: those on the map.
        near: of each member, (n, k).
    """
    rows, times = np.unique(near, return_counts=True)
    commonest = rows[np.lexsort((rows, -times))]
    return np.concatenate([labels, commonest[~np.isin(commonest, labels)]])


class Chosen(Sequence[Any]):
    """Some items of two sequences, each fetched when it is asked for.

    Args:
        parts: the sequences, each with the places of its items.
    """

    def __init__(self, *parts: tuple[Sequence[Any], NDArray[np.int64]]) -> None:
        self.places = [(items, row) for items, rows in parts for row in rows.tolist()]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, place: Any) -> Any:
        items, row = self.places[place]
        return items[row]


def look(items: Items | None, shown: NDArray[np.int64], labeled: NDArray[np.int64]) -> dict[str, Any]:
    """``sheet`` and ``texts``: the items that were embedded, first the members, then the labeled ones."""
    found: dict[str, Any] = {"sheet": None, "texts": None}
    if items is not None:
        members, known = (items.pool, shown), (items.labeled, labeled)
        if items.kind == IMAGE:
            found["sheet"] = sheet_of_items(Chosen(members, known))
        elif items.kind == TEXT:
            texts = excerpts([Chosen(members), Chosen(known)])
            found["texts"] = dict(zip(("members", "labeled"), texts, strict=True))
    return found
