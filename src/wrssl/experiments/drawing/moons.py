"""Decision boundaries of Figure 2: the moons with foreign points, drawn from the models that were kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from wrssl.data import load_scenario
from wrssl.experiments.catalogue.fig2 import EXPERIMENT, PICTURED, POOLS
from wrssl.experiments.cell import read_labels
from wrssl.experiments.plan import ENDINGS, KEPT
from wrssl.experiments.statistics import Row, protocols


def draw_moons(rows: Sequence[Row], folder: Path) -> None:
    """Write ``boundaries-<kind>.png`` for every kind of foreign points that has models."""
    from wrssl.evaluate.boundaries import draw_boundaries

    panel = next(panel for panel in EXPERIMENT.panels if panel.key == "moons")
    for budget, steps in protocols(rows, panel)[:1]:  # of several protocols the first is drawn, as in the figure
        there = [row for row in rows if (row["budget"], int(row["steps"])) == (budget, steps)]
        for ood in POOLS["moons"]:
            found = {
                label.curve: result
                for row in there
                for label in read_labels(row["label"])
                if (label.panel, label.column) == ("moons", ood) and (result := _result(row, folder)) is not None
            }
            named = {f"{c}\n{budget} budget, {steps:,} steps": found[c] for c in PICTURED if c in found}
            if named:
                scenario = load_scenario("moons", ood, 0.5, seed=0)
                draw_boundaries(scenario, named, folder / f"boundaries-{ood}.png")


def _result(row: Row, folder: Path) -> Any:
    """What the picture needs of a run: its model and its accuracy; None where the model was not kept."""
    path = folder / KEPT / f"{row['config_hash']}.{ENDINGS['model']}"
    if not path.is_file():
        return None
    import torch
    from safetensors.torch import load_file

    from wrssl.models import build_model

    model = build_model(row["model"], (2,), 2, torch.Generator().manual_seed(0))
    model.load_state_dict(load_file(path))
    return SimpleNamespace(model=model.eval(), metrics={"test_accuracy": float(row["test_accuracy"])})
