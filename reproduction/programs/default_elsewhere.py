"""The default on small tables that come with scikit-learn, and on two moons: nothing to fetch, minutes to run.

    OMP_NUM_THREADS=1 .venv/bin/python reproduction/programs/default_elsewhere.py \
        --out docs/results/default/elsewhere.csv

Half of every pool is foreign, made of the own rows in ways that pictures of other things are not: other classes, noise,
columns shuffled independently, means of two rows, rows that are moved far away; ``clean`` has none. One row per case,
base method and seed, with the test accuracy of supervised, plain, hand-cleaned and ``wr``, and what the fallback would
have chosen. Rows that are there are not made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from default_grid import append, commit, read
from numpy.typing import NDArray

import wrssl
from wrssl.evaluate import auroc, is_ood

Array = NDArray[Any]
STEPS, LABELS, VALIDATION = 600, 5, 100  # optimizer steps, labels per class, validation rows in all
METHODS, SEEDS = ("vat", "pi", "pl"), range(3)
AWAY = 5.0  # deviations of the whole table
CANDIDATES = ("wr", "plain", "supervised")  # of the fallback, in the order that decides ties


def shuffled(x: Array, random: np.random.Generator) -> Array:
    """Every column in an order of its own: the same columns, nothing that joins them."""
    return np.stack([random.permutation(column) for column in x.T], 1)


STRANGERS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "uniform": lambda x, random: random.uniform(x.min(0), x.max(0), x.shape),
    "shuffled": shuffled,
    "mean": lambda x, random: (random.permutation(x) + random.permutation(x)) / 2,
    "faraway": lambda x, random: x + AWAY * x.std(),
    "clean": lambda x, random: x[:0],
}


class Pair(NamedTuple):
    """The same labels with a pool as it is, and with one cleaned by hand; which members are foreign in the first."""

    full: wrssl.Scenario
    clean: wrssl.Scenario
    foreign: Array


def table(name: str) -> tuple[Array, Array]:
    """Rows and labels."""
    from sklearn import datasets

    if name == "digits":
        x, y = datasets.load_digits(return_X_y=True)
        return x / 16, y
    x, y = datasets.load_breast_cancer(return_X_y=True)
    return (x - x.mean(0)) / x.std(0), y


def pair(name: str, kind: str, seed: int) -> Pair:
    """The data of a case."""
    if name == "moons":
        full, clean = (wrssl.load_scenario("moons", kind, 0.5, seed=seed, clean=clean) for clean in (False, True))
        truth = is_ood(full)
        assert truth is not None
        return Pair(full, clean, truth.numpy())
    random = np.random.default_rng(seed)
    x, y = table(name)
    if kind == "classes":
        own = y < 6
        strangers, x, y = x[~own], x[own], y[own]
    else:
        strangers = STRANGERS[kind](x, random)
    order = random.permutation(len(x))
    x, y = x[order].astype(np.float32), y[order]
    third = len(x) // 3
    test, x, y = (x[:third], y[:third]), x[third:], y[third:]
    labeled = np.concatenate([np.flatnonzero(y == c)[:LABELS] for c in np.unique(y)])
    rest = random.permutation(np.setdiff1d(np.arange(len(x)), labeled))
    held, pool = rest[:VALIDATION], x[rest[VALIDATION:]]
    strangers = random.permutation(strangers)[: len(pool)].astype(np.float32)

    def scenario(unlabeled: Array) -> wrssl.Scenario:
        return wrssl.Scenario((x[labeled], y[labeled]), unlabeled, (x[held], y[held]), test)

    foreign = np.arange(len(pool) + len(strangers)) >= len(pool)
    return Pair(scenario(np.concatenate([pool, strangers])), scenario(pool), foreign)


def cases() -> Iterator[tuple[str, str]]:
    """Tables and kinds of strangers."""
    for kind in ("classes", *STRANGERS):
        yield "digits", kind
    for kind in STRANGERS:
        yield "cancer", kind
    for kind in ("faraway", "boundary", "mixed"):
        yield "moons", kind


def fit(scenario: wrssl.Scenario, method: str, weights: str, seed: int) -> wrssl.Result:
    """An MLP on one thread, without fallback."""
    bn = "weighted" if weights == "wr" else "batch"
    return wrssl.fit(scenario, "mlp", method, weights, bn, STEPS, seed, fallback=False, progress=False, threads=1)


def row_of(data: Pair, supervised: dict[str, Any], method: str, seed: int) -> dict[str, Any]:
    """Train the three that depend on the method."""
    robust = fit(data.full, method, "wr", seed)
    plain, clean = (fit(scenario, method, "none", seed).metrics for scenario in (data.full, data.clean))
    found = {"supervised": supervised, "plain": plain, "clean": clean, "wr": robust.metrics}
    chosen = max(CANDIDATES, key=lambda name: (found[name]["val_accuracy"], -found[name]["val_loss"]))
    strange = robust.verdicts["ood_score"].to_numpy()
    return {
        **{name: metrics["test_accuracy"] for name, metrics in found.items()},
        "fallback": found[chosen]["test_accuracy"],
        "chosen": chosen,
        "ood_auroc": auroc(strange, data.foreign) if data.foreign.any() else None,
    }


def main() -> None:
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    options, version = parser.parse_args(), commit()
    there = {(row["table"], row["foreign"], row["method"], row["seed"]) for row in read(options.out)}
    for seed in SEEDS:
        for name, kind in cases():
            wanted = [method for method in METHODS if (name, kind, method, str(seed)) not in there]
            if not wanted:
                continue
            data = pair(name, kind, seed)
            supervised = fit(data.full, "supervised", "none", seed).metrics
            for method in wanted:
                key = {"table": name, "foreign": kind, "method": method, "seed": seed}
                append(options.out, {**key, **row_of(data, supervised, method, seed), "commit": version})
                print(name, kind, method, seed, flush=True)


if __name__ == "__main__":
    main()
