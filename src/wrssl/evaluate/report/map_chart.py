"""The map of pool and labels as inline SVG: a dot per member in the color of its verdict, a diamond per label.

All dots of a verdict are one path of round pen strokes without length, so that 2,000 points take little space. The name
of a class stands at the label that is nearest to the others of its class, unless it would cover another name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from wrssl.evaluate.report.charts import tag
from wrssl.evaluate.report.pool import WORDS, unpacked
from wrssl.evaluate.report.text import count, plural, shortened

WIDTH, LOWEST, HIGHEST = 600, 320, 600
MARGIN = 18
FINE = 10_000
SIZES = (12, 19)  # of names, on a wide screen and on a phone: as in assets/style.css
LONGEST = 24  # characters of a name
LETTER = 0.6  # width of a letter, of its size
UP = 9  # from the middle of a diamond to the line of its name
REACH = 5  # of a diamond
DIAMOND = f"l{REACH} {REACH} -{REACH} {REACH} -{REACH} -{REACH}z"  # from its top

Box: TypeAlias = tuple[float, float, float, float]  # left, top, right and bottom


@dataclass(frozen=True)
class Positions:
    """Where the points are drawn.

    Attributes:
        x: first of the members, then of the labels.
        y: likewise.
        height: of the map; its width is ``WIDTH``.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    height: int


def positions(found: dict[str, Any]) -> Positions:
    """From the coordinates that ``collect`` stored."""
    scale = (WIDTH - 2 * MARGIN) / FINE
    x, y = (unpacked(found[name]) * scale for name in ("x", "y"))
    wide, tall = (float(values.max(initial=0.0)) for values in (x, y))
    height = int(np.clip(tall + 2 * MARGIN, LOWEST, HIGHEST))
    return Positions((x + (WIDTH - wide) / 2).round(1), (y + (height - tall) / 2).round(1), height)


def map_chart(found: dict[str, Any], words: list[str], labels: list[str]) -> Markup:
    """The picture.

    Args:
        found: ``map`` of the page.
        words: the verdict of each member on the map.
        labels: the class of each labeled example on the map.
    """
    at = positions(found)
    here = np.array(words, dtype=object)
    members = len(words)
    x, y = at.x[:members], at.y[:members]
    drawn = []
    for word in sorted(set(words), key=lambda word: (word not in WORDS, word == "doubt", word)):  # doubt above the rest
        chosen = here == word
        color = word if word in WORDS else "other"
        drawn.append(tag("path", d=_dots(x[chosen], y[chosen]), class_=f"points {color}"))
    diamonds = zip(at.x[members:].tolist(), at.y[members:].tolist(), strict=True)
    # One by one: overlapping ones in one path would be hatched by their outlines.
    drawn.append(tag("g", *(tag("path", d=f"M{a:g} {b - REACH:g}{DIAMOND}") for a, b in diamonds), class_="labeled"))
    for name, (left, top), anchor, narrow in names(at.x[members:], at.y[members:], labels):
        class_ = "class-name" if narrow else "class-name wide"
        drawn.append(tag("text", name, x=left, y=top, text_anchor=anchor, class_=class_))
    counted = ", ".join(f"{count(int((here == word).sum()))} {word}" for word in dict.fromkeys([*WORDS, *words]))
    said = f"A map of {plural(members, 'pool member')} ({counted}) and {plural(len(labels), 'labeled example')}."
    box = f"0 0 {WIDTH} {at.height}"
    return tag("svg", tag("title", said), *drawn, viewBox=box, role="img", class_="chart map", id="map-picture")


def _dots(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    return "".join(f"M{a:g} {b:g}h.01" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def names(
    x: NDArray[np.float64], y: NDArray[np.float64], labels: list[str]
) -> list[tuple[str, tuple[float, float], str, bool]]:
    """The names that fit: text, place, anchor, and whether there is room on a phone too; large classes first."""
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(labels):
        rows_of.setdefault(name, []).append(row)
    taken: dict[int, list[Box]] = {size: [] for size in SIZES}
    found = []
    for name, rows in sorted(rows_of.items(), key=lambda pair: -len(pair[1])):
        points = np.stack([x[rows], y[rows]], axis=1)
        apart = np.linalg.norm(points[:, None] - points[None], axis=2).sum(1)
        left, top = (float(v) for v in points[apart.argmin()])
        anchor = "start" if left < WIDTH / 5 else "end" if left > 4 * WIDTH / 5 else "middle"
        text = shortened(name, LONGEST)
        boxes = [_box(left, top - UP, size, len(text), anchor) for size in SIZES]
        free = [
            _inside(box) and not any(_touch(box, other) for other in taken[size])
            for size, box in zip(SIZES, boxes, strict=True)
        ]
        if free[0]:
            found.append((text, (left, top - UP), anchor, free[1]))
            for size, box, fits in zip(SIZES, boxes, free, strict=True):
                taken[size] += [box] if fits else []
    return found


def _box(x: float, y: float, size: int, letters: int, anchor: str) -> Box:
    """Left, top, right and bottom of a text whose line is at ``y``."""
    wide = LETTER * size * letters
    left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * wide
    return left, y - size, left + wide, y + 0.2 * size


def _inside(box: Box) -> bool:
    return box[0] >= 0 and box[1] >= 0 and box[2] <= WIDTH


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
