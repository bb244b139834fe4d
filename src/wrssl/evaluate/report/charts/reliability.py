"""The reliability diagram: how often the model is right, by how sure it says it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from wrssl.evaluate.report.charts.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, frame
from wrssl.evaluate.report.charts.tags import chart, tag

TICKS = [0.0, 0.25, 0.5, 0.75, 1.0]


def reliability_diagram(title: str, bins: Sequence[dict[str, Any]]) -> Markup:
    """Bars of accuracy with a dash at the mean confidence of the bin; on the diagonal the two are equal.

    The more rows a bin holds, the stronger its bar.

    Args:
        title: what it shows.
        bins: ``count``, ``confidence`` and ``accuracy`` each, of equal width over [0, 1].
    """
    x, y = Scale(0, 1, LEFT, WIDTH - RIGHT), Scale(0, 1, HEIGHT - BOTTOM, TOP)
    drawn = [frame(x, y, TICKS, TICKS, "confidence", "accuracy")]
    most = max(1, *(row["count"] for row in bins))
    said = []
    for k, row in enumerate(bins):
        if row["count"]:
            left, right = x(k / len(bins)) + 1, x((k + 1) / len(bins)) - 1
            top = y(row["accuracy"])
            strength = 0.3 + 0.7 * (row["count"] / most) ** 0.5
            box = {"x": left, "y": top, "width": right - left, "height": max(0.0, y.start - top)}
            drawn.append(tag("rect", **box, class_="bar colour-1", fill_opacity=float(strength)))
            at = y(row["confidence"])
            drawn.append(tag("line", x1=left, x2=right, y1=at, y2=at, class_="dash"))
            said.append(
                f"{row['count']:,} rows at confidence {row['confidence']:.2f} with accuracy {row['accuracy']:.2f}"
            )
    drawn.append(tag("line", x1=x(0), y1=y(0), x2=x(1), y2=y(1), class_="diagonal"))
    return chart(title, "; ".join(said) + ".", WIDTH, HEIGHT, *drawn)
