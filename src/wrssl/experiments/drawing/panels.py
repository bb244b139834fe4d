"""One panel: lines over numbers, dots over names, or bars for times."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wrssl.experiments.catalogue.cells import LEARNER, SUPERVISED
from wrssl.experiments.drawing.style import Style, ordered, styles
from wrssl.experiments.experiment import ACCURACY, TIME, Panel
from wrssl.experiments.statistics import Spot, Stat

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = dict[Spot, dict[int, float]]
PRINTED = "printed in the paper"
LETTERS = 48  # of all names below a panel together, in one line
SPREAD = 0.7  # of the width between two names that the dots of one name take
AXES = {ACCURACY: "test accuracy / %", TIME: "time of a step / time of plain SSL"}


def draw_lines(axis: Axes, panel: Panel, found: Values) -> None:
    """Curves over the columns that are numbers; foreign data that were added stand beside as open marks."""
    numbers = [column for column in panel.columns if _is_number(column)]
    logarithmic = len(numbers) > 4 and float(numbers[-1]) > 100 * float(numbers[0])
    for curve, style in _styles(found).items():
        there = [(float(c), Stat.of(found[curve, c].values())) for c in numbers if (curve, c) in found]
        if there:
            _errorbar(axis, [x for x, _ in there], [s for _, s in there], style, curve, style.line)
        for column in panel.columns:
            if column not in numbers and (curve, column) in found and curve not in (SUPERVISED, LEARNER):
                stat = Stat.of(found[curve, column].values())
                axis.plot(
                    float(column.split()[0]) + 2, stat.mean, style.marker, mfc="none", mec=style.colour,
                    color=style.colour, ms=7,
                )  # fmt: skip
    if logarithmic:
        axis.set_xscale("log")
    axis.set_xticks([float(number) for number in numbers], numbers)
    axis.minorticks_off()
    axis.set_xlabel(panel.axis + (" (open: added)" if len(numbers) < len(panel.columns) else ""))
    axis.set_ylabel(AXES[panel.value])


def draw_dots(axis: Axes, panel: Panel, found: Values) -> None:
    """Marks side by side over names."""
    looks = _styles(found)
    columns = [column for column in panel.columns if any(c == column for _, c in found)]
    for place, (curve, style) in enumerate(looks.items()):
        shift = SPREAD * ((place + 0.5) / len(looks) - 0.5)
        there = [(n + shift, Stat.of(found[curve, c].values())) for n, c in enumerate(columns) if (curve, c) in found]
        _errorbar(axis, [x for x, _ in there], [s for _, s in there], style, curve, "none")
    for n in range(1, len(columns)):
        axis.axvline(n - 0.5, color="#dddddd", lw=0.8)
    axis.set_xlim(-0.5, len(columns) - 0.5)
    axis.set_xticks(range(len(columns)), [textwrap.fill(name, max(8, LETTERS // len(columns))) for name in columns])
    axis.set_xlabel(panel.axis)
    axis.set_ylabel(AXES[panel.value])


def draw_printed(axis: Axes, panel: Panel, found: Values, printed: Mapping[Spot, tuple[float, float]]) -> None:
    """The paper's own numbers as open diamonds, in the colours of their curves."""
    named = False
    for curve, style in _styles(found).items():
        there = [(float(c), *printed[curve, c]) for c in panel.columns if _is_number(c) and (curve, c) in printed]
        if there:
            x, mean, spread = zip(*there, strict=True)
            name = None if named else PRINTED  # once in the legend
            axis.errorbar(
                x, mean, spread, label=name, color=style.colour, marker="D", mfc="white", ms=6, ls="none", lw=0.8
            )
            named = True


def draw_bars(axis: Axes, panel: Panel, found: Values) -> None:
    """Horizontal bars from 0, with their numbers."""
    looks = _styles(found)
    stats = {curve: Stat.of(found[curve, panel.columns[0]].values()) for curve in looks}
    for place, (curve, stat) in enumerate(stats.items()):
        axis.barh(place, stat.mean, xerr=stat.std or 0, color=looks[curve].colour, height=0.7)
        axis.text(stat.mean + (stat.std or 0), place, f" {stat.mean:.2f}", va="center", fontsize=8)
    axis.set_yticks(range(len(stats)), list(stats))
    axis.invert_yaxis()
    axis.set_xlim(0, 1.15 * max(stat.mean + (stat.std or 0) for stat in stats.values()))
    axis.axvline(1, color="black", lw=0.8, ls=":")
    axis.set_xlabel(panel.axis)


def _styles(found: Values) -> dict[str, Style]:
    return styles(ordered(list(dict.fromkeys(curve for curve, _ in found))))


def _errorbar(axis: Axes, x: list[float], stats: list[Stat], style: Style, name: str, line: str) -> None:
    spread = [stat.std or 0.0 for stat in stats]
    axis.errorbar(
        x, [stat.mean for stat in stats], spread, label=name, color=style.colour, marker=style.marker, linestyle=line,
        mfc=style.colour if style.filled else "none", ms=5, lw=1.3, capsize=2, elinewidth=0.8,
    )  # fmt: skip


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()
