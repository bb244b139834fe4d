"""The weights at the end, in bins, each divided by verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from wrssl.evaluate.report.charts.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, frame, ticks
from wrssl.evaluate.report.charts.tags import chart, tag


def histogram(title: str, parts: Mapping[str, Sequence[int]]) -> Markup:
    """Bars over [0, 1].

    Args:
        title: what it shows.
        parts: for each word (a class of the style sheet) a count per bin; the first stands at the bottom.
    """
    bins = len(next(iter(parts.values())))
    totals = [sum(counts[k] for counts in parts.values()) for k in range(bins)]
    y_ticks = ticks(0, max(1, *totals), 4)
    x = Scale(0, 1, LEFT, WIDTH - RIGHT)
    y = Scale(0, y_ticks[-1], HEIGHT - BOTTOM, TOP)
    drawn = [frame(x, y, [0.0, 0.25, 0.5, 0.75, 1.0], y_ticks, "weight")]
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
    return chart(title, f"Members by verdict: {said}.", WIDTH, HEIGHT, *drawn)
