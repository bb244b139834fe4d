"""How long a cell takes on one free core, predicted from measured step times.

    seconds(cell) = steps · s(model, method) · f(weights) + data + evaluations and verdicts + preparation of the weights

Measured, on one core of a busy machine and rounded down by a fifth (100 labelled and 100 unlabelled examples per step):
``mlp`` and ``lenet`` with head scope and the rivals, ``small_cnn`` with supervised, PL, VAT and clusters. Estimated,
not measured: everything of ``wrn-28-2``, Π-Model and Mean Teacher, whole-network updates of the paper's two, and the
preparation of ``wr`` on photographs. It serves for a forecast only.
"""

from __future__ import annotations

from wrssl.experiments.cell import Cell

# Seconds per step without weights; by network, then by method.
STEP = {
    "mlp": {"supervised": 0.003, "vat": 0.005},
    "lenet": {"supervised": 0.013, "pl": 0.025, "vat": 0.038},
    "small_cnn": {"supervised": 0.1, "pl": 0.17, "pi": 0.22, "mt": 0.22, "vat": 0.27},
    "wrn-28-2": {"supervised": 1.5, "pl": 3.0, "pi": 4.5, "mt": 4.5, "vat": 7.5},
}
FACTOR = {"none": 1.0, "oracle": 1.25, "uasd": 1.15, "l2rw": 1.9, "mwn": 2.1, "ds3l": 2.5, "wr": 1.2}
HEAD, NETWORK = 0.03, 1.5  # the paper's two: what one weight update adds, per look-ahead step or term, in steps
PREPARE = {"moons": (0.1, 0.5), "mnist": (2.0, 6.0), "digits": (0.2, 1.0)}  # clusters, and wr with clusters and prior
PREPARE_PHOTOS = (17.0, 40.0)  # the same for 3,072 values per image
IMAGES = {"mlp": 1e-6, "lenet": 4e-5, "small_cnn": 1.5e-4, "wrn-28-2": 5e-3}  # seconds per image that is only looked at
LOAD = {"moons": 0.1, "digits": 0.2, "mnist": 1.7, "cifar10": 8.0, "cifar100": 2.0, "svhn": 4.0}
LOOKED_AT = {"moons": 2000, "digits": 1500, "mnist": 60_000, "cifar10": 24_000, "cifar100": 25_500, "svhn": 60_000}
VALIDATION = {"moons": 400, "digits": 200, "mnist": 10_000, "cifar10": 3000, "cifar100": 2500, "svhn": 4500}
FIXED = 1.5  # verdicts, metrics


def cell_seconds(cell: Cell) -> float:
    """The prediction for one core."""
    model = cell.model.removesuffix("-nobn")
    step = STEP[model][cell.method] * _factor(cell)
    held = VALIDATION[cell.dataset] if cell.n_validation is None else cell.n_validation
    evaluations = max(20, cell.steps // 100)
    looks = LOOKED_AT[cell.dataset] + evaluations * held / (2 if cell.roles == "halves" else 1)
    clusters, both = PREPARE.get(cell.dataset, PREPARE_PHOTOS)
    prepare = {"wr": both, "wr-cluster": clusters}.get(cell.weights, 0.0)
    return cell.steps * step + LOAD[cell.dataset] + IMAGES[model] * looks + prepare + FIXED


def _factor(cell: Cell) -> float:
    if cell.weights not in ("wr-cluster", "wr-instance"):
        return FACTOR[cell.weights]
    one = NETWORK if cell.scope == "network" else HEAD
    work = 1 + (3 if cell.J is None else cell.J) + (5 if cell.P is None else cell.P)
    return 1.1 + one * work / (cell.L or 5)


def wall_seconds(cells: list[Cell], jobs: int) -> float:
    """For so many jobs on free cores: the sum shared out, but never less than the longest cell."""
    each = [cell_seconds(cell) for cell in cells]
    return max(sum(each) / max(1, jobs), max(each, default=0.0))


def in_words(seconds: float) -> str:
    """A time that a person can plan with."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.0f} days"
