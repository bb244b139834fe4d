"""The core grid of the default: every pool, ratio, base method and weighting, run cell by cell and resumable.

    WRSSL_DATA=... .venv/bin/python reproduction/programs/default_grid.py --groups core \
        --out docs/results/default/results.csv

One row per run is appended as soon as the run ends; a run whose row is there already is not made again. Several
processes may share one file: ``--share 0/2`` and ``--share 1/2`` take every second cell each. ``default_tables.py``
makes the tables and figures of the rows.

Data on which nothing was chosen: where Fashion-MNIST and MNIST change places, the same program runs with clothes as the
own images (``ood`` is still ``fashion`` in the rows, for what lies in that folder, now digits):

    mkdir swapped && ln -s "$WRSSL_DATA"/EMNIST swapped/EMNIST
    ln -s "$WRSSL_DATA"/FashionMNIST swapped/MNIST && ln -s "$WRSSL_DATA"/MNIST swapped/FashionMNIST
    .venv/bin/python reproduction/programs/default_grid.py --out docs/results/default/swapped.csv --data-dir swapped \
        --groups supervised core core-ours --methods supervised vat pl --seeds 0

A clean pool is the same whatever was taken out of it, and supervised training does not use the pool, so these are run
once and stand for every kind of foreign rows (``ood`` is ``any`` in their rows).
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import wrssl
from wrssl_reproduction.cell import revision_of

POOLS = ("fashion", "emnist", "mean", "mixed")
METHODS = ("vat", "pl", "pi", "mt")
OURS = ("prior", "wr")
# One stage switched off each (the first two together are the weighting ``prior``), and two of them.
STAGES = ("wr:refine=false", "wr:admit=false", "wr:prior=false", "wr:prior=false;refine=false")
RIVALS = ("wr-cluster", "uasd", "l2rw", "ds3l", "mwn", "wr-instance")
METRICS = (
    "test_accuracy", "val_accuracy", "val_loss", "last_val_accuracy", "best_step", "ood_auroc", "ood_fpr95",
    "ood_aupr", "weight_auroc", "weight_fpr95", "weight_aupr", "intensity_auroc", "mean_weight_id",
    "mean_weight_ood", "drop_rate_id", "drop_rate_ood", "seconds_per_step", "images_forwarded",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One run; ``weights`` may also be ``clean`` (plain on the hand-cleaned pool), or have options after a colon."""

    ood: str
    ratio: float
    method: str
    weights: str
    seed: int
    model: str = "lenet"
    validation: int = 10_000  # 0: no validation set at all
    learns_validation: bool = False  # train on labels and validation labels together
    steps: int = 2000


def core(weights: tuple[str, ...], seeds: range = range(3)) -> Iterator[Cell]:
    """Every pool at 50 % and every base method, with batch norm."""
    for seed in seeds:
        for method in METHODS:
            for kind in weights:
                for ood in POOLS:
                    yield Cell(ood, 0.5, method, kind, seed)


def ratios(weights: tuple[str, ...]) -> Iterator[Cell]:
    """Fashion with VAT at every ratio, five seeds."""
    for seed in range(5):
        for ratio in (0.5, 0.25, 0.75, 0.0):
            for kind in weights:
                if (ratio, kind) != (0.0, "clean"):  # that is plain
                    yield Cell("fashion", ratio, "vat", kind, seed)


def without_norm(weights: tuple[str, ...]) -> Iterator[Cell]:
    """Mean images without batch norm, with more rows of the right kind in their place as a control (ratio 0)."""
    for seed in range(5):
        for method in ("vat", "pl"):
            for kind in weights:
                for ratio in (0.5, 0.0) if kind == "none" else (0.5,):
                    yield Cell("mean", ratio, method, kind, seed, model="lenet-nobn")


def supervised() -> Iterator[Cell]:
    """On the labels, and on the labels and the validation labels."""
    for seed in range(5):
        yield Cell("fashion", 0.5, "supervised", "none", seed)
        yield Cell("fashion", 0.5, "supervised", "none", seed, learns_validation=True)
        yield Cell("fashion", 0.5, "supervised", "none", seed, model="lenet-nobn")


def two_methods(weights: tuple[str, ...]) -> Iterator[Cell]:
    """Other weightings, or other stages of the default, on every pool with two base methods."""
    for seed in range(3):
        for method in ("pl", "vat"):
            for kind in weights:
                for ood in POOLS:
                    yield Cell(ood, 0.5, method, kind, seed)


def detection(validation: int) -> Iterator[Cell]:
    """What the prior sees, five seeds; it does not depend on training, so that is short."""
    for seed in range(5):
        for ood in POOLS:
            yield Cell(ood, 0.5, "vat", "wr", seed, validation=validation, steps=10)


CONTROLS = ("none", "clean", "oracle")
GROUPS = {
    "supervised": supervised,
    "core": lambda: core(CONTROLS),
    "ratios": lambda: ratios(CONTROLS),
    "rivals": lambda: two_methods(RIVALS),
    "without-norm": lambda: without_norm(CONTROLS),
    "core-ours": lambda: core(OURS),
    "ratios-ours": lambda: ratios(OURS),
    "without-norm-ours": lambda: without_norm(OURS),
    "detection": lambda: detection(10_000),
    "few-labels": lambda: detection(0),
    "stages": lambda: two_methods(STAGES),
}


def shared(cell: Cell) -> Cell:
    """The cell as it stands in its row: once for all pools where the pool does not matter, with the revision.

    A revision of the weighting above 1 is part of its name, as in ``wr@2:refine=false``: rows of an older one do not
    stand for it.
    """
    name, colon, changes = cell.weights.partition(":")
    if (revision := revision_of(name)) > 1:
        cell = replace(cell, weights=f"{name}@{revision}{colon}{changes}")
    return replace(cell, ood="any") if name == "clean" or cell.method == "supervised" else cell


def scenario_of(cell: Cell, data_dir: str | None) -> wrssl.Scenario:
    """The data of a cell."""
    ood = "fashion" if cell.ood == "any" else cell.ood
    scenario = wrssl.load_scenario(
        "mnist", ood, cell.ratio, seed=cell.seed, data_dir=data_dir, clean=cell.weights == "clean",
        validation_size=cell.validation if cell.validation != 10_000 else None,
    )  # fmt: skip
    if not cell.learns_validation:
        return scenario
    assert scenario.validation is not None
    # Half of the validation labels is learned, the other half chooses the checkpoint, as for every other method.
    halves = np.random.default_rng(cell.seed).permutation(len(scenario.validation[1]))
    learned, kept = np.array_split(halves, 2)
    x, y = scenario.validation
    both = torch.cat([scenario.labeled[0], x[learned]]), torch.cat([scenario.labeled[1], y[learned]])
    return wrssl.Scenario(both, scenario.unlabeled, (x[kept], y[kept]), scenario.test, name="labels and validation")


def intensity_auroc(scenario: wrssl.Scenario) -> float | None:
    """How well the mean brightness alone tells foreign from own, the better of the two directions."""
    from wrssl.evaluate import auroc, is_ood

    truth = is_ood(scenario)
    if truth is None:
        return None
    bright = scenario.unlabeled.flatten(1).double().mean(1).numpy()
    found = auroc(bright, truth.numpy())
    return None if found is None else max(found, 1 - found)


def run(cell: Cell, data_dir: str | None, options: dict[str, Any], version: str) -> dict[str, Any]:
    """Train one cell with this version of the code."""
    scenario = scenario_of(cell, data_dir)
    name, _, changes = cell.weights.partition(":")
    weights = "none" if name == "clean" else name.partition("@")[0]
    if changes:
        pairs = (change.split("=") for change in changes.split(";"))
        options = {**options, "weight_options": {setting: json.loads(value) for setting, value in pairs}}
    bn = "batch" if weights == "none" else "weighted"
    begin = time.perf_counter()
    result = wrssl.fit(
        scenario, cell.model, cell.method, weights, bn, cell.steps, cell.seed, fallback=False, progress=False, **options
    )
    row: dict[str, Any] = {**asdict(cell), "bn": bn, "seconds": round(time.perf_counter() - begin, 1)}
    row |= {name: result.metrics.get(name) for name in METRICS}
    row["intensity_auroc"] = intensity_auroc(scenario)
    return {
        **row,
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "commit": version,
    }


def commit() -> str:
    """The version of the code that ran."""
    try:
        got = subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True,
            cwd=Path(__file__).parent,
        )  # fmt: skip
        return got.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def key(row: dict[str, Any]) -> tuple[str, ...]:
    """What makes a row a repetition of another one."""
    return tuple(str(row[name]) for name in Cell.__dataclass_fields__)


def read(path: Path) -> list[dict[str, str]]:
    """The rows that are there."""
    return list(csv.DictReader(path.open())) if path.exists() else []


def append(path: Path, row: dict[str, Any]) -> None:
    """Add a row; several processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writer = csv.DictWriter(file, list(row))
        if file.tell() == 0:
            writer.writeheader()
        elif path.read_text(encoding="utf-8").partition("\n")[0].strip().split(",") != list(row):
            raise SystemExit(f"{path} has other columns than the rows that are made now; start another file.")
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) and k not in ("ratio",) else v for k, v in row.items()})


def main() -> None:
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--groups", nargs="+", default=list(GROUPS), choices=list(GROUPS))
    parser.add_argument("--share", default="0/1", help="which part of the cells, for example 1/2")
    parser.add_argument("--weights", nargs="+", help="only these weightings")
    parser.add_argument("--methods", nargs="+", help="only these base methods")
    parser.add_argument("--seeds", nargs="+", type=int, help="only these seeds")
    parser.add_argument("--data-dir", default=os.environ.get("WRSSL_DATA"))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    mine, of = map(int, options.share.split("/"))
    wanted = [cell for group in options.groups for cell in GROUPS[group]()]
    if options.weights:
        wanted = [cell for cell in wanted if cell.weights in options.weights]
    if options.methods:
        wanted = [cell for cell in wanted if cell.method in options.methods]
    if options.seeds:
        wanted = [cell for cell in wanted if cell.seed in options.seeds]
    cells = dict.fromkeys(map(shared, wanted))
    version = commit()  # now: what is imported already does not change with later commits
    for number, cell in enumerate(cells):
        if number % of != mine or key(asdict(cell)) in {key(row) for row in read(options.out)}:
            continue
        row = run(cell, options.data_dir, {"threads": options.threads}, version)
        append(options.out, row)
        words = f"{cell.ood} {cell.ratio} {cell.method} {cell.weights} seed {cell.seed}"
        print(f"{number + 1}/{len(cells)} {words}: {row['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
