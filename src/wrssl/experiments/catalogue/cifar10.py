"""What Figures 4c and 4d share: CIFAR-10 with six classes against four, with batch norm and with frozen batch norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wrssl.experiments.budget import REDUCED, Budget
from wrssl.experiments.catalogue.cells import DEFAULT, ORACLE, PAPERS, PLAIN, make_cell
from wrssl.experiments.catalogue.ratios import AXIS, COLUMNS, NOTES, RIVALS, WEIGHTINGS, claims, sweep
from wrssl.experiments.cell import Cell, Label
from wrssl.experiments.experiment import Claim, Panel

FEW = {curve: WEIGHTINGS[curve] for curve in (PLAIN, PAPERS, DEFAULT, ORACLE)}
CIFAR_NOTES = (
    *NOTES,
    "The paper's caption says batch norm (own: WBN) for CIFAR-10 and its text says frozen batch norm for all methods, "
    "so both are here.",
    "The paper takes the hyper-parameters of Oliver et al.; warm-up of the coefficient and the late drop of the "
    "learning rate are not among them here: no ramp, × 0.2 at half time, as for MNIST.",
)


NORMS = {"bn": "batch norm", "frozen": "frozen batch norm"}


def both_norms(method: str, short_lr: float | None = None) -> Callable[[Budget], Iterator[Cell]]:
    """The cells of both readings.

    Args:
        method: the base method.
        short_lr: learning rate where a budget has far fewer steps than the paper; None for the method's.
    """

    def cells(budget: Budget) -> Iterator[Cell]:
        lr = budget.pick(None, short_lr)
        yield from sweep(budget, "bn", "cifar10", "classes", method, lr=lr)
        reduced = budget.name == REDUCED.name
        shown = FEW if reduced else WEIGHTINGS
        yield from sweep(budget, "frozen", "cifar10", "classes", method, weightings=shown, bn="frozen", lr=lr)
        if reduced:  # the share that the claims are about
            yield from _frozen_rivals(budget, method, lr)

    return cells


def _frozen_rivals(budget: Budget, method: str, lr: float | None) -> Iterator[Cell]:
    for seed in range(budget.seeds):
        for curve in RIVALS:
            yield make_cell(
                budget, "cifar10", seed, Label("frozen", curve, "50"), method=method, ood="classes",
                weights=WEIGHTINGS[curve], bn="frozen", lr=lr,
            )  # fmt: skip


def panels(name: str) -> tuple[Panel, ...]:
    """One for each reading."""
    return (
        Panel("bn", f"CIFAR-10 6/4, BN (own: WBN), {name}", COLUMNS, AXIS),
        Panel("frozen", f"CIFAR-10 6/4, frozen BN, {name}", COLUMNS, AXIS),
    )


def both_claims() -> tuple[Claim, ...]:
    """What the paper says, for each reading."""
    return tuple(claim for panel, words in NORMS.items() for claim in claims(panel, f" ({words})"))
