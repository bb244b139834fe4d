"""How long a cell takes on one core, predicted from measured times.

    seconds(cell) = steps · s(model, method) · f(weights) + data + evaluations and verdicts + preparation of the weights

Measured, with one thread while the other core was as busy (100 labelled and 100 unlabelled examples per step):
``mlp``, ``lenet`` and ``small_cnn`` with supervised, PL and VAT under every weighting. Estimated, not measured:
everything of ``wrn-28-2``, Π-Model and Mean Teacher. It serves for a forecast only.
"""

from __future__ import annotations

import os

from wrssl.experiments.cell import Cell

# Seconds per step without weights; by network, then by method.
STEP = {
    "mlp": {"supervised": 0.001, "vat": 0.0024},
    "lenet": {"supervised": 0.0097, "pl": 0.018, "vat": 0.0275},
    "small_cnn": {"supervised": 0.045, "pl": 0.083, "pi": 0.11, "mt": 0.11, "vat": 0.15},
    "wrn-28-2": {"supervised": 1.5, "pl": 3.0, "pi": 4.5, "mt": 4.5, "vat": 7.5},
}
FACTOR = {"none": 1.0, "oracle": 1.05, "uasd": 1.17, "l2rw": 1.75, "mwn": 2.0, "ds3l": 2.0, "wr": 1.1}
PAPERS = 1.05  # the paper's two: a step between two weight updates
HEAD, NETWORK = 0.028, 0.85  # and what one weight update adds, per look-ahead step or term, in steps
WEIGHS_THE_POOL = ("ds3l", "mwn")  # whose weights are a function of the loss, which is computed for each verdict
LOSS = 0.4  # the loss of a hundred examples, in steps
PREPARE = {"moons": (0.1, 0.2), "mnist": (1.4, 3.5), "digits": (0.2, 1.0)}  # clusters, and wr with clusters and prior
PREPARE_PHOTOS = (9.0, 11.0)  # the same for 3,072 values per image
IMAGES = {"mlp": 1e-6, "lenet": 3.2e-5, "small_cnn": 1e-4, "wrn-28-2": 5e-3}  # seconds per image that is only looked at
LOAD = {"moons": 0.0, "digits": 0.2, "mnist": 0.5, "cifar10": 1.0, "cifar100": 2.0, "svhn": 4.0}
LOOKED_AT = {"moons": 2000, "digits": 1500, "mnist": 60_000, "cifar10": 24_000, "cifar100": 25_500, "svhn": 60_000}
TESTED = {"moons": 1000, "digits": 500, "mnist": 10_000, "cifar10": 6000, "cifar100": 5000, "svhn": 14_000}
VALIDATION = {"moons": 400, "digits": 200, "mnist": 10_000, "cifar10": 3000, "cifar100": 2500, "svhn": 4500}
FIXED = {"moons": 0.0, "digits": 0.2}  # metrics, rows
FIXED_IMAGES = 1.2


def cell_seconds(cell: Cell) -> float:
    """The prediction for one core."""
    model, whole = cell.model.removesuffix("-nobn"), LOOKED_AT[cell.dataset]
    pool = whole if cell.n_unlabeled is None else min(whole, TESTED[cell.dataset] + cell.n_unlabeled)
    plain = STEP[model][cell.method]
    held = VALIDATION[cell.dataset] if cell.n_validation is None else cell.n_validation
    evaluations = max(20, cell.steps // 100)
    looks = pool + evaluations * held / (2 if cell.roles == "halves" else 1)
    clusters, both = PREPARE.get(cell.dataset, PREPARE_PHOTOS)
    prepare = {"wr": both, "wr-cluster": clusters}.get(cell.weights, 0.0) * pool / whole
    if cell.weights in WEIGHS_THE_POOL:
        prepare += pool / 100 * LOSS * plain
    return (
        cell.steps * plain * _factor(cell) + LOAD[cell.dataset] + IMAGES[model] * looks + prepare
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
    """A cell's part of the time that somebody waits for so many jobs: a timed one has no company."""
    return cell_seconds(cell) / (1 if cell.alone else workers(jobs))


def wall_seconds(cells: list[Cell], jobs: int) -> float:
    """For so many jobs on free cores: the shares in sum, but never less than the timed cells and the longest other."""
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
