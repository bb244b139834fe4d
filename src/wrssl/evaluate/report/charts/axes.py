"""From values to places on the paper, and the marks beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from wrssl.evaluate.report.charts.tags import label, tag

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 40


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
        middle = (y.start + y.end) / 2
        parts.append(
            tag(
                "text", y_name, transform=f"translate(11 {middle:.0f}) rotate(-90)", text_anchor="middle", class_="name"
            )
        )
    return Markup("").join(parts)
