"""Mean weights of own and of foreign members over the steps."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wrssl.experiments.cell import read_labels
from wrssl.experiments.drawing.style import styles
from wrssl.experiments.experiment import Panel
from wrssl.experiments.statistics import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
            looks = list(csv.DictReader(file))
        steps = [int(look["step"]) for look in looks]
        for name, line, words in (("mean_weight_id", "-", "own"), ("mean_weight_ood", "--", "foreign")):
            weights = [float(look[name]) for look in looks]
            axis.plot(steps, weights, line, color=style.colour, lw=1.4, label=f"{curve}, {words}")
    axis.set_ylim(-0.03, 1.03)
    axis.set_xlabel("training steps")
    axis.set_ylabel("mean weight of the group")
