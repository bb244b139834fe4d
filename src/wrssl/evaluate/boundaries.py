"""A picture of decision boundaries on two-dimensional data, one panel per model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from wrssl.data import Scenario
from wrssl.evaluate.inference import logits_of
from wrssl.evaluate.truth import is_ood

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, RED, OOD = "#2b6cb0", "#c53030", "#b7791f"
FINENESS = 300


def draw_boundaries(scenario: Scenario, results: dict[str, Any], path: Path) -> None:
    """Write a PNG with a panel per result: the predicted class as a surface, the labeled examples and the pool.

    Args:
        scenario: two features, two classes.
        results: label to ``Result``.
        path: where the PNG goes.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(results), 4.9), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: no global state, no display
    axes = figure.subplots(1, len(results), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (label, result) in zip(axes, results.items(), strict=True):
        _panel(axis, scenario, result)
        axis.set_title(f"{label}\ntest accuracy {100 * result.metrics['test_accuracy']:.1f} %", fontsize=11)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, markerscale=1.5, fontsize=11)
    figure.savefig(path, dpi=110)


def _panel(axis: Axes, scenario: Scenario, result: Any) -> None:
    pool, (x, y) = scenario.unlabeled.numpy(), (t.numpy() for t in scenario.labeled)
    truth = is_ood(scenario)
    foreign = np.zeros(len(pool), dtype=bool) if truth is None else truth.numpy()
    # Limits around the members that belong: an arrow points at a distant blob, which would shrink the rest otherwise.
    low, high = pool[~foreign].min(0) - 0.6, pool[~foreign].max(0) + 0.6
    grid = np.stack(np.meshgrid(np.linspace(low[0], high[0], FINENESS), np.linspace(low[1], high[1], FINENESS)), -1)
    logits = logits_of(result.model, torch.from_numpy(grid.reshape(-1, 2).astype(np.float32)))
    surface = logits.softmax(1)[:, 1].numpy().reshape(FINENESS, FINENESS)
    extent = (low[0], high[0], low[1], high[1])
    axis.imshow(surface, extent=extent, origin="lower", cmap="RdBu_r", vmin=0, vmax=1, alpha=0.45, aspect="auto")
    if surface.min() < 0.5 < surface.max():
        axis.contour(grid[..., 0], grid[..., 1], surface, levels=[0.5], colors="black", linewidths=1.5)
    inliers, outliers = pool[~foreign], pool[foreign]
    axis.scatter(inliers[:, 0], inliers[:, 1], s=5, c="#4a5568", alpha=0.5, linewidths=0, label="pool, belongs")
    axis.scatter(outliers[:, 0], outliers[:, 1], s=14, c=OOD, marker="^", linewidths=0, label="pool, does not belong")
    for k, color in enumerate((BLUE, RED)):
        rows = x[y == k]
        label = f"labeled, class {k}"
        axis.scatter(rows[:, 0], rows[:, 1], s=55, c=color, edgecolors="white", linewidths=1, label=label)
    axis.set_xlim(low[0], high[0])
    axis.set_ylim(low[1], high[1])
    axis.set_xticks([])
    axis.set_yticks([])
    _point_outside(axis, outliers, low, high)


def _point_outside(axis: Axes, foreign: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """An arrow towards the foreign members outside the panel, so that they are not overlooked."""
    outside = foreign[((foreign < low) | (foreign > high)).any(1)]
    if len(outside) == 0:
        return
    corner = high - 0.03 * (high - low)
    start = high - 0.16 * (high - low)
    axis.annotate("", xy=corner, xytext=start, arrowprops={"arrowstyle": "-|>", "color": OOD, "lw": 2})
    where = "({:.0f}, {:.0f})".format(*outside.mean(0))
    text = f"{len(outside)} more around {where}"
    axis.annotate(text, xy=start, ha="right", va="top", color=OOD, fontsize=9)
