"""Charts as inline SVG: crisp at any size, in the colors of the page (classes of ``assets/style.css``), no library.

Every attribute and every text is escaped. What a chart shows is in its title in words too, for readers who cannot see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup, escape

from wrssl.evaluate.report.text import thinned

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 40
QUARTERS = [0.0, 0.25, 0.5, 0.75, 1.0]
MARKS = 5  # steps that are written below a heat map


def tag(kind: str, *children: str, **attributes: object) -> Markup:
    """An element; ``class_`` becomes ``class``, ``stroke_width`` becomes ``stroke-width``, None is left out.

    A child that is no ``Markup`` is text.
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _number(value))
        for name, value in attributes.items()
        if value is not None
    )
    name = Markup(kind)  # a literal of this file  # nosec B704
    return Markup("<{}{}>{}</{}>").format(name, written, Markup("").join(escape(c) for c in children), name)


def _number(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def label(content: str, x: float, y: float, anchor: str = "middle", class_: str = "tick") -> Markup:
    """A short text."""
    return tag("text", content, x=x, y=y, text_anchor=anchor, class_=class_)


def chart(title: str, description: str, *children: str) -> Markup:
    """A whole picture; its title says what it shows, and the description what there is to see."""
    said = f"{title}. {description}"
    # viewBox keeps its capital letter: SVG distinguishes, and so does the XML that a page may be stored as.
    return tag("svg", tag("title", said), *children, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart")


@dataclass(frozen=True)
class Scale:
    """Maps [low, high] to [start, end]."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where ``value`` is drawn."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def across(low: float, high: float) -> Scale:
    """The horizontal scale of a chart."""
    return Scale(low, high, LEFT, WIDTH - RIGHT)


def upward(low: float, high: float) -> Scale:
    """The vertical scale of a chart."""
    return Scale(low, high, HEIGHT - BOTTOM, TOP)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at or below ``low`` to at or above ``high``, in steps of 1, 2 or 5 times a power of ten."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # one value, up to rounding
        reach = 0.5 * abs(low) or 0.5
        low, high = low - reach, low + reach
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def written(value: float, places: list[float]) -> str:
    """With as many decimals as the tick that needs most of them; very large and very small ones with a power of ten."""
    step = min(abs(b - a) for a, b in pairwise(places))
    if step < 1e-4 or max(map(abs, places)) >= 1e6:
        return f"{value:.4g}"
    digits = next(d for d in range(1, 9) if all(abs(round(place, d) - place) < 1e-3 * step for place in places))
    whole = all(place == round(place) for place in places)
    return f"{value:,.{0 if whole else digits}f}"


def frame(x: Scale, y: Scale, x_ticks: list[float], y_ticks: list[float], x_name: str, y_name: str = "") -> Markup:
    """Grid lines, numbers, and what the axes mean."""
    parts = []
    for value in y_ticks:
        parts.append(tag("line", x1=x.start, x2=x.end, y1=y(value), y2=y(value), class_="grid"))
        parts.append(label(written(value, y_ticks), x.start - 6, y(value) + 4, "end"))
    for value in x_ticks:
        parts.append(tag("line", x1=x(value), x2=x(value), y1=y.start, y2=y.start + 4, class_="axis"))
        parts.append(label(written(value, x_ticks), x(value), y.start + 17))
    parts.append(tag("line", x1=x.start, x2=x.end, y1=y.start, y2=y.start, class_="axis"))
    parts.append(label(x_name, (x.start + x.end) / 2, y.start + 34, class_="name"))
    if y_name:
        turned = f"translate(11 {(y.start + y.end) / 2:.0f}) rotate(-90)"
        parts.append(tag("text", y_name, transform=turned, text_anchor="middle", class_="name"))
    return Markup("").join(parts)


@dataclass(frozen=True)
class Line:
    """A curve.

    Attributes:
        name: in the legend and in the description.
        color: the number of a color of the page, 1 to 4.
        points: (step, value); a value that is None is a gap.
    """

    name: str
    color: int
    points: Sequence[tuple[float, float | None]]

    def known(self) -> list[tuple[float, float]]:
        """The points that have a value."""
        return [(step, value) for step, value in self.points if value is not None]


def lines(
    title: str, curves: Sequence[Line], mark: float | None = None, within: tuple[float, float] | None = None
) -> Markup:
    """Curves over the steps of training, or an empty text where none has a point.

    Args:
        title: what it shows.
        curves: at most four.
        mark: a step to point out.
        within: limits of the values, where they are known beforehand.
    """
    curves = [curve for curve in curves if curve.known()]
    if not curves:
        return Markup("")
    points = [point for curve in curves for point in curve.known()]
    values = [value for _, value in points]
    y_ticks = ticks(*(within or (min(values), max(values))), 5)
    last = max(1.0, *(step for step, _ in points))
    x_ticks = [t for t in ticks(0, last, 4) if t <= last * 1.001]
    x, y = across(0, last), upward(y_ticks[0], y_ticks[-1])
    parts = [frame(x, y, x_ticks, y_ticks, "step")]
    if mark is not None and 0 <= mark <= last:
        parts.append(tag("line", x1=x(mark), x2=x(mark), y1=y.start, y2=y.end, class_="mark"))
        side = "end" if mark > last / 2 else "start"
        parts.append(label("chosen", x(mark) + (-4 if side == "end" else 4), y.start - 6, side))
    for curve in curves:
        parts += _drawn(curve, x, y)
    first_last = "; ".join(f"{c.name} from {c.known()[0][1]:.4g} to {c.known()[-1][1]:.4g}" for c in curves)
    return chart(title, f"Over {last:,.0f} steps: {first_last}.", *parts)


def _drawn(curve: Line, x: Scale, y: Scale) -> list[Markup]:
    path, pen_down = [], False
    for step, value in curve.points:
        if value is None:
            pen_down = False
            continue
        path.append(f"{'L' if pen_down else 'M'}{x(step):.1f} {y(value):.1f}")
        pen_down = True
    step, value = curve.known()[-1]
    return [
        tag("path", d="".join(path), class_=f"line color-{curve.color}"),
        tag("circle", cx=x(step), cy=y(value), r=3, class_=f"dot color-{curve.color}"),
    ]


def heat(title: str, snapshots: Sequence[dict[str, Any]]) -> Markup:
    """How weights spread over time: a column per snapshot, a field per bin, stronger where more members are.

    The mean weight is a line. Without snapshots the text is empty.

    Args:
        title: what it shows.
        snapshots: ``step``, ``mean`` and ``counts`` each, in the order of steps.
    """
    if not snapshots:
        return Markup("")
    x, y = across(0, len(snapshots)), upward(0, 1)
    parts = [frame(x, y, [], QUARTERS, "step", "weight")]
    for column, row in enumerate(snapshots):
        parts += _column(row["counts"], x(column), x(column + 1) - x(column), y)
    middle = [f"{x(k + 0.5):.1f} {y(row['mean']):.1f}" for k, row in enumerate(snapshots)]
    parts.append(tag("path", d="M" + "L".join(middle), class_="line mean"))
    for k in thinned(list(range(len(snapshots))), MARKS):
        parts.append(label(f"{snapshots[k]['step']:,}", x(k + 0.5), y.start + 17))
    first, last = snapshots[0], snapshots[-1]
    lowest, highest = (last["counts"][k] / max(1, sum(last["counts"])) for k in (0, -1))
    said = (
        f"Mean weight from {first['mean']:.3f} at step {first['step']} to {last['mean']:.3f} at step {last['step']}; "
        f"at the end {lowest:.1%} of the members are in the lowest bin and {highest:.1%} in the highest."
    )
    return chart(title, said, *parts)


def _column(counts: Sequence[int], left: float, width: float, y: Scale) -> list[Markup]:
    total, fields = max(1, sum(counts)), []
    for row, number in enumerate(counts):
        if number:
            low, high = y(row / len(counts)), y((row + 1) / len(counts))
            # The root, so that a group of a hundredth of the pool can still be seen.
            strength = 0.08 + 0.92 * math.sqrt(number / total)
            gap = 1.0 if width > 8 else 0.2
            place = {"x": left, "y": high, "width": width - gap, "height": low - high - 0.6}
            fields.append(tag("rect", **place, class_="field", fill_opacity=float(strength)))
    return fields


def histogram(title: str, parts: Mapping[str, Sequence[int]]) -> Markup:
    """Weights in bins over [0, 1], each bar divided by verdict.

    Args:
        title: what it shows.
        parts: for each word (a class of the style sheet) a count per bin; the first is at the bottom.
    """
    bins = len(next(iter(parts.values())))
    totals = [sum(counts[k] for counts in parts.values()) for k in range(bins)]
    y_ticks = ticks(0, max(1, *totals), 4)
    x, y = across(0, 1), upward(0, y_ticks[-1])
    drawn = [frame(x, y, QUARTERS, y_ticks, "weight")]
    for k in range(bins):
        base = 0
        for word, counts in parts.items():
            if counts[k]:
                top = y(base + counts[k])
                left, right = x(k / bins) + 0.75, x((k + 1) / bins) - 0.75
                # A single member of a large pool keeps a visible line.
                height = max(1.0, y(base) - top)
                box = {"x": left, "y": y(base) - height, "width": right - left, "height": height}
                drawn.append(tag("rect", **box, class_=f"bar {word}"))
                base += counts[k]
    said = "; ".join(f"{word}: {sum(counts):,}" for word, counts in parts.items())
    return chart(title, f"Members by verdict: {said}.", *drawn)


def reliability_diagram(title: str, bins: Sequence[dict[str, Any]]) -> Markup:
    """Bars of accuracy with a dash at the mean confidence of the bin; on the diagonal the two are equal.

    The more rows a bin holds, the stronger its bar.

    Args:
        title: what it shows.
        bins: ``count``, ``confidence`` and ``accuracy`` each, of equal width over [0, 1].
    """
    x, y = across(0, 1), upward(0, 1)
    drawn = [frame(x, y, QUARTERS, QUARTERS, "confidence", "accuracy")]
    most = max(1, *(row["count"] for row in bins))
    said = []
    for k, row in enumerate(bins):
        if row["count"]:
            left, right = x(k / len(bins)) + 1, x((k + 1) / len(bins)) - 1
            top = y(row["accuracy"])
            strength = 0.3 + 0.7 * (row["count"] / most) ** 0.5
            box = {"x": left, "y": top, "width": right - left, "height": max(0.0, y.start - top)}
            drawn.append(tag("rect", **box, class_="bar color-1", fill_opacity=float(strength)))
            at = y(row["confidence"])
            drawn.append(tag("line", x1=left, x2=right, y1=at, y2=at, class_="dash"))
            said.append(
                f"{row['count']:,} rows at confidence {row['confidence']:.2f} with accuracy {row['accuracy']:.2f}"
            )
    drawn.append(tag("line", x1=x(0), y1=y(0), x2=x(1), y2=y(1), class_="diagonal"))
    return chart(title, "; ".join(said) + ".", *drawn)
