"""A run without training: small, quick, and with everything in it that a report has to survive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import wrssl
from wrssl.evaluate import collect, render

CLASSES = ["cat", "dog", "<b>bird</b>"]
EVIL = [
    "<script>alert(1)</script>.png",
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    'A "Quoted", comma\'d & <odd> name.png',
    "\U0001d518nicode/\U0001d518\u00e4\u2028\u2029.png",
    "\U0001d518nicode/\U0001d519.png",
    "bytes\udcff.png",
    "{{ 7 * 7 }}{% raw %}",
]
# Products with 100 or 10,000 that binary fractions miss, and values just beside a threshold.
TRICKY = [0.0, 0.29, 0.57, 0.58, np.nextafter(0.5, 0), 0.5, np.nextafter(0.29, 0), 0.07, 1.0, np.float32(0.35)]


@dataclass
class Run:
    """The arguments of ``collect``, by name."""

    scenario: Any
    model: nn.Module
    verdicts: pd.DataFrame
    history: pd.DataFrame
    metrics: dict[str, Any]
    config: dict[str, Any]
    classes: Any
    weight_history: list[dict[str, Any]]

    def but(self, **changes: Any) -> Run:
        return replace(self, **changes)

    def collect(self) -> dict[str, Any]:
        return collect(**vars(self))

    def render(self) -> str:
        return render(self.collect())


def network(shape: tuple[int, ...], classes: int) -> nn.Module:
    generator = torch.Generator().manual_seed(1)
    with torch.random.fork_rng():  # layers initialise themselves from the global generator
        if len(shape) == 1:
            layers = [nn.Linear(shape[0], 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, classes)]
        else:
            pooled = [nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
            layers = [nn.Conv2d(shape[0], 8, 3), nn.BatchNorm2d(8), *pooled, nn.Linear(8, classes)]
    model = nn.Sequential(*layers)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.1)
        list(model.parameters())[-2].mul_(20)  # so that predictions differ
    return model.eval()


def make_run(
    size: int = 150,
    shape: tuple[int, ...] = (1, 8, 8),
    test: bool = True,
    validation: bool = True,
    truth: bool = True,
    clusters: int | None = 5,
    ids: list[str] | None = None,
    classes: list[str] = CLASSES,
) -> Run:
    random = np.random.default_rng(0)

    def part(rows: int) -> Any:
        return random.integers(0, 256, (rows, *shape), dtype=np.uint8), np.resize(np.array(classes), rows)

    labeled, held_out, tested = part(2 * len(classes)), part(max(40, len(classes))), part(max(90, len(classes)))
    pool = random.integers(0, 256, (size, *shape), dtype=np.uint8)
    if ids is None:
        ids = [*EVIL, *(f"folder {k // 20}/image-{k:05d}.png" for k in range(size - len(EVIL)))]
    scenario = wrssl.Scenario(
        labeled,
        pool,
        held_out if validation else None,
        tested if test else None,
        random.random(size) < 0.4 if truth else None,
        name="cats & <dogs>",
        overlap="allow",
        ids=ids,
    )
    scenario.notes = ["A note with <markup>."]
    scenario.skipped = [("<i>broken</i>.jpg", "It is no <image>."), ("empty.png", "The file is empty.")]
    weight = random.random(size).round(3)
    weight[: len(TRICKY)] = TRICKY
    score = random.random(size)
    verdict = np.where(score > 0.9, "drop", np.where((score > 0.7) | (weight < 0.5), "doubt", "keep")).astype(object)
    unknown = pd.array([pd.NA] * size, dtype="Int8")
    verdicts = pd.DataFrame(
        {
            "id": ids,
            "weight": weight,
            "ood_score": score,
            "is_ood": scenario._is_ood.numpy().astype("int8") if truth else unknown,
            "verdict": verdict,
            "cluster": unknown if clusters is None else (np.arange(size) % clusters).astype("int32"),
            "pseudo_label": scenario.classes[random.integers(0, len(classes), size)].astype(object),
            "confidence": random.random(size),
        }
    )
    history = pd.DataFrame(
        {
            "step": [10, 20, 30],
            "labeled": [1.5, 0.75, 0.25],
            "unlabeled": [0.125, 0.25, 0.5],
            "mean_weight": [0.5, 0.5, 0.5],
            "val_accuracy": [0.5, 0.8125, 0.75] if validation else [None] * 3,
            "val_loss": [1.25, 0.625, 0.6875] if validation else [None] * 3,
            "seconds": [1.0, 2.0, 3.25],
        }
    )
    metrics = {
        "test_accuracy": 0.8125 if test else None,
        "val_accuracy": 0.8125 if validation else None,
        "best_step": 20,
        "optimizer_steps": 30,
        "fallback_steps": 0,
        "chosen": None,
        "seconds_per_step": 0.0125,
        "ood_auroc": 0.9375 if truth else None,
        "not_a_number": float("nan"),
    }
    config = {
        "wrssl": "0.1.0",
        "torch": "2.13.0",
        "threads": 1,
        "scenario": {"name": "own <data>"},
        "classes": list(classes),
        "model": "auto",
        "method": "vat",
        "method_options": {},
        "weights": "wr",
        "weight_options": {},
        "seed": 7,
        "steps": 30,
        "device": "cpu",
        "false_drop_rate": 0.05,
    }
    snapshots = [
        {"step": step, "mean": 0.5, "members": size, "counts": [size - 2, *[0] * 18, 2]} for step in (0, 10, 20, 30)
    ]
    model = network(shape, len(classes))
    return Run(scenario, model, verdicts, history, metrics, config, scenario.classes, snapshots)


@pytest.fixture(scope="session")
def run() -> Run:
    return make_run()


@pytest.fixture(scope="session")
def data(run: Run) -> dict[str, Any]:
    """What ``collect`` gives; tests that change it copy it first."""
    return run.collect()


@pytest.fixture(scope="session")
def make():
    """``make_run``; with this import mode a test cannot import its neighbours."""
    return make_run
