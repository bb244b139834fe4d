"""How the cost of a step grows with the size of the pool, the batch, the classes, and with J, P and L.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/programs/performance.py

Each point times a step of VAT with wr-cluster and weighted batch norm, and one of plain VAT, in turns and on one
thread. Its row is appended to docs/results/performance/results.csv as soon as it is there, and points with a row are
not measured again; delete rows to repeat them. At the end every sweep that has rows gets a picture in
docs/images/performance/. A part: --sweeps pool L; a quick look elsewhere: --blocks 2 --at-most 100 --out results
--images images.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from wrssl.training import Trainer
from wrssl_bench.report import environment
from wrssl_bench.steps import images, make_trainer, stepper, table_rows, table_trainer
from wrssl_bench.timing import interleave, torch_threads

Make = Callable[..., Trainer]
ROBUST, PLAIN = "wr-cluster + WBN", "plain VAT"
WARMUP = 5


@dataclass(frozen=True)
class Sweep:
    """One thing that varies: ``make(value)`` is a factory of trainers, which still wants to know the weighting."""

    label: str
    values: tuple[int, ...]
    make: Callable[[int], Make]
    option: str | None = None  # the weighting's option that takes the value


def of_pool(size: int) -> Make:
    return partial(table_trainer, table_rows(size), 100)


def of_batch(size: int) -> Make:
    return partial(make_trainer, images(labels=800), batch_size=size)  # batches never hold all labels


def of_classes(number: int) -> Make:
    return partial(make_trainer, images(classes=number, labels=400))


def as_it_is(value: int) -> Make:
    return partial(make_trainer, images())


SWEEPS = {
    "pool": Sweep("members of the pool (table, mlp)", (10**3, 10**4, 10**5, 10**6, 10**7), of_pool),
    "batch": Sweep("batch size", (25, 50, 100, 200, 400), of_batch),
    "classes": Sweep("classes", (2, 5, 10, 20, 50, 100, 200), of_classes),
    "J": Sweep("J, look-ahead steps", (0, 1, 3, 5, 10, 20), as_it_is, "J"),
    "P": Sweep("P, terms of the series", (0, 1, 2, 5, 10, 20, 40), as_it_is, "P"),
    "L": Sweep("L, steps between two weight updates", (1, 2, 5, 10, 20, 50), as_it_is, "L"),
}


def measure(sweep: Sweep, value: int, blocks: int) -> dict[str, Any]:
    options = {sweep.option: value} if sweep.option else {}
    period = options.get("L", 5)
    length = period * -(-WARMUP // period)  # whole periods, at least five steps
    pairs = max(min(blocks, 5), blocks * WARMUP // length)  # fewer where a pair takes longer
    make = sweep.make(value)
    robust, plain = stepper(make(weights="wr-cluster", **options)), stepper(make(weights="none"))
    figure = interleave(robust, plain, pairs, length, WARMUP).figure()
    return {"ratio": figure.median, "spread": figure.spread, **figure.details, "length": length}


def rows_of(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.exists() else pd.DataFrame({"sweep": [], "value": []})


def draw(name: str, rows: pd.DataFrame, path: Path) -> None:
    from matplotlib.figure import Figure

    rows = rows.sort_values("value")
    places = range(len(rows))  # equal distances: the values grow by factors, and J and P start at 0
    picture = Figure(figsize=(9, 3.2), layout="constrained")
    times, ratios = picture.subplots(1, 2)
    times.plot(places, rows["ms"], "o-", label=ROBUST)
    times.plot(places, rows["base_ms"], "s--", label=PLAIN)
    times.set(ylabel="ms per step", ylim=(0, 1.1 * rows["ms"].max()))
    times.legend()
    ratios.errorbar(places, rows["ratio"], rows["spread"] / 2, fmt="o-", capsize=3)
    ratios.axhline(1, color="grey", linewidth=0.8)
    ratios.set(ylabel=f"{ROBUST} ÷ plain")
    for axes in (times, ratios):
        axes.set_xlabel(SWEEPS[name].label)
        axes.set_xticks(places, [f"{value:,}" for value in rows["value"]])
        axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=130)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweeps", nargs="+", default=list(SWEEPS), choices=list(SWEEPS))
    parser.add_argument("--blocks", type=int, default=30, help="pairs per point, of five steps each")
    parser.add_argument("--at-most", type=int, default=10**9, help="leave out larger values")
    parser.add_argument("--out", type=Path, default=Path("docs/results/performance"))
    parser.add_argument("--images", type=Path, default=Path("docs/images/performance"))
    options = parser.parse_args(arguments)
    path = options.out / "results.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in options.sweeps:
        for value in (v for v in SWEEPS[name].values if v <= options.at_most):
            if ((rows_of(path)["sweep"] == name) & (rows_of(path)["value"] == value)).any():
                continue
            with torch_threads(1):
                row = {"sweep": name, "value": value, **measure(SWEEPS[name], value, options.blocks), **environment()}
            pd.DataFrame([row]).to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.5g")
            print(f"{name} {value}: {row['ms']:.1f} ms, ratio {row['ratio']:.3f}", flush=True)
        mine = rows_of(path)[rows_of(path)["sweep"] == name]
        if len(mine):
            draw(name, mine, options.images / f"{name}.png")


if __name__ == "__main__":
    main()
