"""figure.png of an experiment: its panels side by side, with the budget named."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wrssl.runs import write_atomically
from wrssl_reproduction.budget import BUDGETS
from wrssl_reproduction.experiment import TIME, Experiment, Panel
from wrssl_reproduction.panels import draw_bars, draw_dots, draw_lines, draw_printed, draw_traces
from wrssl_reproduction.statistics import Protocol, Row, protocols, values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 7.2, 4.2  # inches of a panel, legend included
ACROSS = 2


def draw_figure(experiment: Experiment, rows: Sequence[Row], traces: Mapping[str, Path], path: Path) -> None:
    """Write the PNG.

    Args:
        experiment: its panels and their order.
        rows: of results.csv.
        traces: by hash, the files of runs that kept their weights.
        path: where the PNG goes. A panel without rows is left out; of several protocols the first is drawn.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [(panel, found[0]) for panel in experiment.panels if (found := protocols(rows, panel))]
    if not shown:
        return
    across = min(ACROSS, len(shown))
    down = math.ceil(len(shown) / across)
    figure = Figure(figsize=(WIDTH * across, HEIGHT * down + 0.9), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: no global state, no display
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for axis, (panel, protocol) in zip(axes, shown, strict=False):
        _draw(axis, experiment, panel, protocol, rows, traces)
    for axis in axes[len(shown) :]:
        axis.set_axis_off()
    budgets = dict.fromkeys(protocol[0] for _, protocol in shown)
    notes = "\n".join(textwrap.fill(BUDGETS[name].note.replace("`", ""), 62 * across) for name in budgets)
    figure.suptitle(f"{experiment.name}: {experiment.title}\n{notes}", fontsize=9)
    write_atomically(path, lambda part: figure.savefig(part, dpi=110, format="png"))


def _draw(
    axis: Axes,
    experiment: Experiment,
    panel: Panel,
    protocol: Protocol,
    rows: Sequence[Row],
    traces: Mapping[str, Path],
) -> None:
    budget, steps = protocol
    axis.set_title(f"{panel.title}\n{budget} budget, {steps:,} steps", fontsize=9)
    if panel.kind == "traces":
        draw_traces(axis, panel, rows, traces)
    else:
        found = values(rows, panel, protocol)
        order = experiment.curves(panel.key, (curve for curve, _ in found))
        found = dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))
        draw = draw_lines if panel.kind == "lines" else draw_bars if panel.value == TIME else draw_dots
        if found:
            draw(axis, panel, found)
        if found and panel.kind == "lines":
            printed = {
                (label.curve, label.column): v for label, v in experiment.printed.items() if label[0] == panel.key
            }
            draw_printed(axis, panel, found, printed)
    axis.grid(axis="x" if panel.kind == "bars" and panel.value == TIME else "y", color="#e5e5e5", lw=0.6)
    axis.set_axisbelow(True)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=7, frameon=False)
