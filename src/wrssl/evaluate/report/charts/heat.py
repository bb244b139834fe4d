"""How the weights of the pool spread over time: a column per look, a field per bin, stronger where more members are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from wrssl.evaluate.report.charts.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, frame
from wrssl.evaluate.report.charts.tags import chart, label, tag
from wrssl.evaluate.report.plain import thinned

MARKS = 5  # steps that are written below


def heat(title: str, looks: Sequence[dict[str, Any]]) -> Markup:
    """The picture, with the mean weight as a line; an empty text without looks.

    Args:
        title: what it shows.
        looks: ``step``, ``mean`` and ``counts`` each, in the order of steps.
    """
    if not looks:
        return Markup("")
    y = Scale(0, 1, HEIGHT - BOTTOM, TOP)
    x = Scale(0, len(looks), LEFT, WIDTH - RIGHT)
    parts = [frame(x, y, [], [0.0, 0.25, 0.5, 0.75, 1.0], "step", "weight")]
    for column, look in enumerate(looks):
        parts += _column(look["counts"], x(column), x(column + 1) - x(column), y)
    middle = [f"{x(k + 0.5):.1f} {y(look['mean']):.1f}" for k, look in enumerate(looks)]
    parts.append(tag("path", d="M" + "L".join(middle), class_="line mean"))
    for k in thinned(list(range(len(looks))), MARKS):
        parts.append(label(f"{looks[k]['step']:,}", x(k + 0.5), y.start + 17))
    first, last = looks[0], looks[-1]
    lowest, highest = (last["counts"][k] / max(1, sum(last["counts"])) for k in (0, -1))
    said = (
        f"Mean weight from {first['mean']:.3f} at step {first['step']} to {last['mean']:.3f} at step {last['step']}; "
        f"at the end {lowest:.1%} of the members are in the lowest bin and {highest:.1%} in the highest."
    )
    return chart(title, said, WIDTH, HEIGHT, *parts)


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
