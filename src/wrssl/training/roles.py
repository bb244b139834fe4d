"""The two roles of validation labels: *meta* drives the weights, *select* chooses the checkpoint.

``fit`` halves the validation set by seed, class by class, so that no example does both and every weighting selects on
the same half. ``budget="paper"`` uses one set for both, as the paper does. Without a validation set the weights are
driven by cross-fitting: in each weight update one fold of the labelled batch is left out of the labelled loss and
serves as validation batch; the checkpoint is then the last one, since no label is left to choose by.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wrssl.api import OptionError
from wrssl.data import spread_over_folds
from wrssl.training.randomness import stream

FOLDS = 5
BUDGETS = ("halves", "paper")


@dataclass(frozen=True)
class Roles:
    """Examples and labels of each role; None where there is no validation set."""

    meta: tuple[Tensor, Tensor] | None
    select: tuple[Tensor, Tensor] | None


def assign_roles(validation: tuple[Tensor, Tensor] | None, seed: int, budget: str) -> Roles:
    """Halve the validation set, or share it (``budget="paper"``)."""
    if budget not in BUDGETS:
        raise OptionError(f"budget must be one of {', '.join(BUDGETS)}, not {budget!r}.")
    if validation is None or budget == "paper":
        return Roles(validation, validation)
    x, y = validation
    shuffled = torch.randperm(len(y), generator=stream(seed, "roles"))
    by_class = shuffled[torch.argsort(y[shuffled], stable=True)]
    # Alternating within the sorted classes: each class is halved, and so is the whole.
    meta, select = by_class[0::2].sort().values, by_class[1::2].sort().values
    if len(select) == 0:  # a single validation example cannot be halved; choosing by it is worth more
        return Roles(None, validation)
    return Roles((x[meta], y[meta]), (x[select], y[select]))


def fold_of(y: Tensor, seed: int) -> Tensor:
    """The fold, 0 … FOLDS−1, of each labelled example; every class is spread over the folds."""
    shuffled = torch.randperm(len(y), generator=stream(seed, "folds"))
    return torch.from_numpy(spread_over_folds(y.numpy(), shuffled.numpy(), FOLDS))
