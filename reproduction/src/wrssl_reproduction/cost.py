"""How long cells take, predicted from measured times, and the forecast of ``--dry-run``.

On one core:

    seconds(cell) = steps · s(model, method) · f(weights) + data + evaluations and verdicts + preparation of the weights

Measured with one thread while the other core was as busy (100 labeled and 100 unlabeled examples per step): ``mlp``,
``lenet`` and ``small_cnn`` with supervised, PL and VAT under every weighting. Estimated, not measured: everything of
``wrn-28-2``, Π-Model and Mean Teacher. It serves for a forecast only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wrssl_reproduction.cell import Cell
from wrssl_reproduction.plan import prepare

# Seconds per step without weights; by network, then by method.
STEP = {
    "mlp": {"supervised": 0.001, "vat": 0.0024},
    "lenet": {"supervised": 0.0097, "pl": 0.018, "vat": 0.0275},
    "small_cnn": {"supervised": 0.045, "pl": 0.083, "pi": 0.11, "mt": 0.11, "vat": 0.15},
    "wrn-28-2": {"supervised": 1.5, "pl": 3.0, "pi": 4.5, "mt": 4.5, "vat": 7.5},
}
FACTOR = {"none": 1.0, "oracle": 1.05, "uasd": 1.17, "l2rw": 1.75, "mwn": 2.0, "ds3l": 2.0, "wr": 1.1}
PAPERS = 1.05  # the paper's two weightings: a step between two weight updates
HEAD, NETWORK = 0.028, 0.85  # what one weight update adds, per look-ahead step or term, in steps
WEIGHS_THE_POOL = ("ds3l", "mwn")  # their weights are a function of the loss, which is computed for each verdict
LOSS = 0.4  # the loss of a hundred examples, in steps
PREPARE = {"moons": (0.1, 0.2), "mnist": (1.4, 3.5), "digits": (0.2, 1.0)}  # clusters, and wr with clusters and prior
PREPARE_PHOTOS = (9.0, 11.0)  # the same for 3,072 values per image
IMAGES = {"mlp": 1e-6, "lenet": 3.2e-5, "small_cnn": 1e-4, "wrn-28-2": 5e-3}  # seconds per image of an evaluation
LOAD = {"moons": 0.0, "digits": 0.2, "mnist": 0.5, "cifar10": 1.0, "cifar100": 2.0, "svhn": 4.0}
EVALUATED = {"moons": 2000, "digits": 1500, "mnist": 60_000, "cifar10": 24_000, "cifar100": 25_500, "svhn": 60_000}
TESTED = {"moons": 1000, "digits": 500, "mnist": 10_000, "cifar10": 6000, "cifar100": 5000, "svhn": 14_000}
VALIDATION = {"moons": 400, "digits": 200, "mnist": 10_000, "cifar10": 3000, "cifar100": 2500, "svhn": 4500}
FIXED = {"moons": 0.0, "digits": 0.2}  # metrics, rows
FIXED_IMAGES = 1.2


def cell_seconds(cell: Cell) -> float:
    """The prediction for one core."""
    model, whole = cell.model.removesuffix("-nobn"), EVALUATED[cell.dataset]
    pool = whole if cell.n_unlabeled is None else min(whole, TESTED[cell.dataset] + cell.n_unlabeled)
    plain = STEP[model][cell.method]
    held = VALIDATION[cell.dataset] if cell.n_validation is None else cell.n_validation
    evaluations = max(20, cell.steps // 100)
    images = pool + evaluations * held / (2 if cell.roles == "halves" else 1)
    clusters, both = PREPARE.get(cell.dataset, PREPARE_PHOTOS)
    prepare = {"wr": both, "wr-cluster": clusters}.get(cell.weights, 0.0) * pool / whole
    if cell.weights in WEIGHS_THE_POOL:
        prepare += pool / 100 * LOSS * plain
    return (
        cell.steps * plain * _factor(cell) + LOAD[cell.dataset] + IMAGES[model] * images + prepare
        + FIXED.get(cell.dataset, FIXED_IMAGES)
    )  # fmt: skip


def _factor(cell: Cell) -> float:
    if cell.weights not in ("wr-cluster", "wr-instance"):
        return FACTOR[cell.weights]
    one = NETWORK if cell.scope == "network" else HEAD
    work = 1 + (3 if cell.J is None else cell.J) + (5 if cell.P is None else cell.P)
    return PAPERS + one * work / (cell.L or 5)


def workers(jobs: int) -> int:
    """How many processes ``--jobs`` means: −1 is one per core."""
    return (os.cpu_count() or 1) if jobs < 1 else jobs


def share_seconds(cell: Cell, jobs: int) -> float:
    """A cell's part of the waiting time with so many jobs; a cell whose time is measured runs alone."""
    return cell_seconds(cell) / (1 if cell.alone else workers(jobs))


def wall_seconds(cells: list[Cell], jobs: int) -> float:
    """With so many jobs on free cores: the sum of the shares, at least the timed cells and the longest other one."""
    timed = sum(cell_seconds(cell) for cell in cells if cell.alone)
    longest = max((cell_seconds(cell) for cell in cells if not cell.alone), default=0.0)
    return max(sum(share_seconds(cell, jobs) for cell in cells), timed + longest)


def in_words(seconds: float) -> str:
    """A time that a person can plan with."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.0f} days"


def forecast(name: str, budget: str, seeds: int | None, jobs: int, out: Path, **settings: Any) -> Iterator[str]:
    """Lines for ``--dry-run``: how many runs, what they need, how long they take. Nothing is run and nothing written.

    The arguments are those of ``reproduce``. A run that several experiments share is counted where it is named first.
    """
    experiments, chosen, plan = prepare(name, budget, seeds, out, **settings)
    cells = dict(zip(plan.todo, plan.cells(), strict=True))
    yield chosen.note
    for experiment in experiments:
        wanted = [key for key, places in plan.places.items() if any(p.experiment is experiment for p in places)]
        mine = [cells[key] for key in wanted if key in cells and plan.places[key][0].experiment is experiment]
        skipped = sum(key in plan.skipped for key in wanted)
        left_out = sum(key in plan.left_out for key in wanted)
        there = sum(key not in cells and key not in plan.skipped for key in wanted) - left_out
        elsewhere = len(wanted) - len(mine) - skipped - there - left_out
        parts = [f"{len(wanted)} runs", f"{len(mine)} to make"]
        parts += [f"{there} there already"] if there else []
        parts += [f"{elsewhere} made for another experiment"] if elsewhere else []
        parts += [f"{left_out} left out"] if left_out else []
        parts += [f"{skipped} skipped for want of data"] if skipped else []
        yield f"{experiment.name}: {', '.join(parts)}; about {in_words(wall_seconds(mine, jobs))}"
    for sentence in dict.fromkeys(plan.skipped.values()):
        yield f"skipped: {sentence}"
    total = sum(map(cell_seconds, cells.values()))
    yield (
        f"in all {len(cells)} runs, about {in_words(wall_seconds(list(cells.values()), jobs))} with {workers(jobs)} "
        f"jobs on free cores ({in_words(total)} of one core); nothing was run"
    )
