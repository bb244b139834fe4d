"""One panel: lines over numbers, dots over names, bars for times, or mean weights over the steps.

Colors, markers and lines tell curves apart, also without color (Okabe and Ito's palette).
"""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wrssl_reproduction.catalogue.cells import CLEAN, DEFAULT, LEARNER, ORACLE, PAPERS, PLAIN, SUPERVISED
from wrssl_reproduction.cell import read_labels
from wrssl_reproduction.experiment import ACCURACY, TIME, Panel
from wrssl_reproduction.statistics import Row, Spot, Stat

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = dict[Spot, dict[int, float]]
PRINTED = "printed in the paper"
LETTERS = 48  # of all names below a panel together, in one line
SPREAD = 0.7  # of the width between two names that the dots of one name take
AXES = {ACCURACY: "test accuracy / %", TIME: "time of a step / time of plain SSL"}
ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#E69F00", "#56B4E9", "#009E73", "#B8A800", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
BLACK, GREY = "#000000", "#777777"


@dataclass(frozen=True)
class Style:
    """How a curve is drawn."""

    color: str
    marker: str = "o"
    line: str = "-"
    filled: bool = True


ADDED = ", added"  # the end of a curve's name: the same with foreign data added, drawn with open marks
KNOWN = {
    PLAIN: Style(RED, "s"), "SSL-BN": Style(RED, "s"), "SSL-NBN": Style(PURPLE, "D"), "SSL-FBN": Style(ORANGE, "^"),
    "skyline (clean pool, BN)": Style(BLACK, "p"), "skyline without BN (clean pool)": Style(GREY, "p"),
    f"{PAPERS} without CRW": Style(SKY, "h"), PAPERS: Style(BLUE), "WR-SSL": Style(BLUE), "all of it": Style(BLUE),
    DEFAULT: Style(GREEN, "*"),
    "UASD": Style(ORANGE, "^"), "DS3L": Style(PURPLE, "D"), "L2RW": Style(SKY, "v"), "MWN": Style(YELLOW, "P"),
    "last layer": Style(BLUE), "whole network": Style(ORANGE, "s"),
    SUPERVISED: Style(GREY, "x", ":"), LEARNER: Style(GREY, "+", "-."), CLEAN: Style(BLACK, "_", "--"),
    ORACLE: Style(BLACK, "1", ":"),
}  # fmt: skip
REST = [Style(color, marker, "--") for marker in "hX<>" for color in (SKY, YELLOW, PURPLE, ORANGE, GREY)]


def styles(curves: list[str]) -> dict[str, Style]:
    """A style for each curve; a known curve has the same one in every figure."""
    rest = iter(REST)
    found: dict[str, Style] = {}
    for curve in curves:
        base = curve.removesuffix(ADDED)
        style = KNOWN[base] if base in KNOWN else next(rest)
        found[curve] = style if base == curve else replace(style, line=":", filled=False)
    return found


def ordered(curves: list[str]) -> list[str]:
    """Controls last."""
    return sorted(curves, key=lambda curve: curve in (CLEAN, ORACLE, SUPERVISED, LEARNER))


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
                    float(column.split()[0]) + 2, stat.mean, style.marker, mfc="none", mec=style.color,
                    color=style.color, ms=7,
                )  # fmt: skip
    if logarithmic:
        axis.set_xscale("log")
    axis.set_xticks([float(number) for number in numbers], numbers)
    axis.minorticks_off()
    axis.set_xlabel(panel.axis + (" (open: added)" if len(numbers) < len(panel.columns) else ""))
    axis.set_ylabel(AXES[panel.value])


def draw_dots(axis: Axes, panel: Panel, found: Values) -> None:
    """Marks side by side over names."""
    curves = _styles(found)
    columns = [column for column in panel.columns if any(c == column for _, c in found)]
    for place, (curve, style) in enumerate(curves.items()):
        shift = SPREAD * ((place + 0.5) / len(curves) - 0.5)
        there = [(n + shift, Stat.of(found[curve, c].values())) for n, c in enumerate(columns) if (curve, c) in found]
        _errorbar(axis, [x for x, _ in there], [s for _, s in there], style, curve, "none")
    for n in range(1, len(columns)):
        axis.axvline(n - 0.5, color="#dddddd", lw=0.8)
    axis.set_xlim(-0.5, len(columns) - 0.5)
    axis.set_xticks(range(len(columns)), [textwrap.fill(name, max(8, LETTERS // len(columns))) for name in columns])
    axis.set_xlabel(panel.axis)
    axis.set_ylabel(AXES[panel.value])


def draw_printed(axis: Axes, panel: Panel, found: Values, printed: Mapping[Spot, tuple[float, float]]) -> None:
    """The paper's own numbers as open diamonds, in the colors of their curves."""
    named = False
    for curve, style in _styles(found).items():
        there = [(float(c), *printed[curve, c]) for c in panel.columns if _is_number(c) and (curve, c) in printed]
        if there:
            x, mean, spread = zip(*there, strict=True)
            name = None if named else PRINTED  # once in the legend
            axis.errorbar(
                x, mean, spread, label=name, color=style.color, marker="D", mfc="white", ms=6, ls="none", lw=0.8
            )
            named = True


def draw_bars(axis: Axes, panel: Panel, found: Values) -> None:
    """Horizontal bars from 0, with their numbers."""
    styled = _styles(found)
    stats = {curve: Stat.of(found[curve, panel.columns[0]].values()) for curve in styled}
    for place, (curve, stat) in enumerate(stats.items()):
        axis.barh(place, stat.mean, xerr=stat.std or 0, color=styled[curve].color, height=0.7)
        axis.text(stat.mean + (stat.std or 0), place, f" {stat.mean:.2f}", va="center", fontsize=8)
    axis.set_yticks(range(len(stats)), list(stats))
    axis.invert_yaxis()
    axis.set_xlim(0, 1.15 * max(stat.mean + (stat.std or 0) for stat in stats.values()))
    axis.axvline(1, color="black", lw=0.8, ls=":")
    axis.set_xlabel(panel.axis)


def draw_traces(axis: Axes, panel: Panel, rows: Sequence[Row], files: Mapping[str, Path]) -> None:
    """A full line for own members and a dashed one for foreign members, for every run that kept its weights."""
    curves = {
        label.curve: files[row["config_hash"]]
        for row in rows
        for label in read_labels(row["label"])
        if label.panel == panel.key and row["config_hash"] in files
    }
    for curve, style in styles(list(curves)).items():
        with curves[curve].open(newline="", encoding="utf-8") as file:
            evaluations = list(csv.DictReader(file))
        steps = [int(row["step"]) for row in evaluations]
        for name, line, words in (("mean_weight_id", "-", "own"), ("mean_weight_ood", "--", "foreign")):
            weights = [float(row[name]) for row in evaluations]
            axis.plot(steps, weights, line, color=style.color, lw=1.4, label=f"{curve}, {words}")
    axis.set_ylim(-0.03, 1.03)
    axis.set_xlabel("training steps")
    axis.set_ylabel("mean weight of the group")


def _styles(found: Values) -> dict[str, Style]:
    return styles(ordered(list(dict.fromkeys(curve for curve, _ in found))))


def _errorbar(axis: Axes, x: list[float], stats: list[Stat], style: Style, name: str, line: str) -> None:
    spread = [stat.std or 0.0 for stat in stats]
    axis.errorbar(
        x, [stat.mean for stat in stats], spread, label=name, color=style.color, marker=style.marker, linestyle=line,
        mfc=style.color if style.filled else "none", ms=5, lw=1.3, capsize=2, elinewidth=0.8,
    )  # fmt: skip


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()
