"""Curves over the steps of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from wrssl.evaluate.report.charts.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, frame, ticks
from wrssl.evaluate.report.charts.tags import chart, label, tag


@dataclass(frozen=True)
class Line:
    """A curve.

    Attributes:
        name: in the legend and in the description.
        colour: the number of a colour of the page, 1 to 4.
        points: (step, value); a value that is None is a gap.
    """

    name: str
    colour: int
    points: Sequence[tuple[float, float | None]]

    def known(self) -> list[tuple[float, float]]:
        """The points that have a value."""
        return [(step, value) for step, value in self.points if value is not None]


def lines(
    title: str, curves: Sequence[Line], mark: float | None = None, within: tuple[float, float] | None = None
) -> Markup:
    """One picture with these curves, or an empty text where none has a point.

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
    x = Scale(0, last, LEFT, WIDTH - RIGHT)
    y = Scale(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = [frame(x, y, x_ticks, y_ticks, "step")]
    if mark is not None and 0 <= mark <= last:
        parts.append(tag("line", x1=x(mark), x2=x(mark), y1=y.start, y2=y.end, class_="mark"))
        side = "end" if mark > last / 2 else "start"
        parts.append(label("chosen", x(mark) + (-4 if side == "end" else 4), y.start - 6, side))
    for curve in curves:
        parts += _drawn(curve, x, y)
    first_last = "; ".join(f"{c.name} from {c.known()[0][1]:.4g} to {c.known()[-1][1]:.4g}" for c in curves)
    return chart(title, f"Over {last:,.0f} steps: {first_last}.", WIDTH, HEIGHT, *parts)


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
        tag("path", d="".join(path), class_=f"line colour-{curve.colour}"),
        tag("circle", cx=x(step), cy=y(value), r=3, class_=f"dot colour-{curve.colour}"),
    ]
