"""MNIST with 50 % Fashion-MNIST in the pool, VAT, 2,000 updates: what contamination costs, and what weights give back.

    WRSSL_DATA=... .venv/bin/python reproduction/programs/contamination.py --seeds 0 1 2 \
        --out docs/results/engine/results.csv

One row per run is appended as soon as the run ends; rows that are there already are not run again. The summary
(mean ± standard error over the seeds) is printed at the end and with --summary alone.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import statistics
import subprocess
from pathlib import Path

import torch

import wrssl

# name: (method, weights, bn, ratio, clean)
CELLS = {
    "ratio 0, plain": ("vat", "none", "batch", 0.0, False),
    "50 %, plain": ("vat", "none", "batch", 0.5, False),
    "50 %, frozen BN": ("vat", "none", "frozen", 0.5, False),
    "50 %, oracle + WBN": ("vat", "oracle", "weighted", 0.5, False),
    "50 %, clean": ("vat", "none", "batch", 0.5, True),
    "supervised": ("supervised", "none", "batch", 0.5, False),
    "50 %, wr-cluster + WBN": ("vat", "wr-cluster", "weighted", 0.5, False),
    "50 %, wr-instance + WBN": ("vat", "wr-instance", "weighted", 0.5, False),
}
COLUMNS = [
    "cell", "ood", "ratio", "clean", "method", "weights", "bn", "seed", "steps", "test_accuracy", "val_accuracy",
    "last_val_accuracy", "best_step", "ood_auroc", "weight_auroc", "mean_weight_id", "mean_weight_ood",
    "seconds_per_step", "images_forwarded", "threads", "torch", "machine", "commit",
]  # fmt: skip


def commit() -> str:
    try:
        got = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        return got.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open())) if path.exists() else []


def run(cell: str, seed: int, steps: int, ood: str, data_dir: str | None) -> dict[str, object]:
    method, weights, bn, ratio, clean = CELLS[cell]
    scenario = wrssl.load_scenario("mnist", ood=ood, ratio=ratio, seed=seed, clean=clean, data_dir=data_dir)
    result = wrssl.fit(scenario, method=method, weights=weights, bn=bn, steps=steps, seed=seed, fallback=False)
    row: dict[str, object] = {
        "cell": cell, "ood": ood, "ratio": ratio, "clean": clean, "method": method, "weights": weights, "bn": bn,
        "seed": seed, "steps": steps, "threads": torch.get_num_threads(), "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores", "commit": commit(),
    }  # fmt: skip
    return {**row, **{k: result.metrics[k] for k in COLUMNS if k in result.metrics}}


def summary(rows: list[dict[str, str]]) -> str:
    lines = ["| cell | seeds | test accuracy | last − best validation | s/step |", "|---|---|---|---|---|"]
    for cell in CELLS:
        mine = [r for r in rows if r["cell"] == cell]
        if not mine:
            continue
        test = [100 * float(r["test_accuracy"]) for r in mine]
        error = statistics.stdev(test) / len(test) ** 0.5 if len(test) > 1 else float("nan")
        drop = [100 * (float(r["last_val_accuracy"]) - float(r["val_accuracy"])) for r in mine]
        step = statistics.median(float(r["seconds_per_step"]) for r in mine)
        shown = f"{statistics.mean(test):.2f} ± {error:.2f} | {min(drop):.2f} at worst | {step:.3f}"
        lines.append(f"| {cell} | {len(mine)} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--ood", default="fashion")
    parser.add_argument("--data-dir", default=os.environ.get("WRSSL_DATA"))
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds if not options.summary else []:
        for cell in options.cells:
            rows = read(options.out)
            if any(r["cell"] == cell and int(r["seed"]) == seed and int(r["steps"]) == options.steps for r in rows):
                continue
            row = run(cell, seed, options.steps, options.ood, options.data_dir)
            fresh = not options.out.exists()
            with options.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                if fresh:
                    writer.writeheader()
                writer.writerow(row)
            print(f"{cell}, seed {seed}: {100 * float(str(row['test_accuracy'])):.2f} %", flush=True)
    print(summary(read(options.out)))


if __name__ == "__main__":
    main()
