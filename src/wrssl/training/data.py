"""What training may see of a scenario: no test set and no truth."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wrssl.api import Augmentation
from wrssl.data import Scenario, prepare
from wrssl.training.batch import Batch
from wrssl.training.order import Order
from wrssl.training.randomness import stream, stream_seed
from wrssl.training.roles import Roles, assign_roles, fold_of
from wrssl.training.thinned import ThinnedOrder


@dataclass(frozen=True)
class TrainingData:
    """The parts of a scenario that the loop works on."""

    labeled: tuple[Tensor, Tensor]
    unlabeled: Tensor
    roles: Roles
    num_classes: int
    noise: float
    epsilon: float
    augmentation: Augmentation | None = None

    @classmethod
    def of(cls, scenario: Scenario, seed: int, budget: str) -> TrainingData:
        """Take over what training may see, with the validation roles assigned."""
        roles = assign_roles(scenario.validation, seed, budget)
        return cls(
            scenario.labeled,
            scenario.unlabeled,
            roles,
            scenario.num_classes,
            scenario.noise,
            scenario.vat_epsilon,
            scenario.augmentation,
        )


class Batches:
    """The batch of every step, a function of the step alone.

    Labelled and unlabelled order depend on the seed only, so that methods and weightings are compared on the same data
    in the same order.
    """

    def __init__(self, data: TrainingData, batch_size: int, seed: int, device: torch.device) -> None:
        self.data, self.seed, self.device, self.batch_size = data, seed, device, batch_size
        self.labeled = Order(len(data.labeled[1]), batch_size, stream_seed(seed, "labelled order"))
        self._admission: Tensor | None = None
        self.unlabeled = self._everybody()
        meta = data.roles.meta
        self.meta = None if meta is None else Order(len(meta[1]), batch_size, stream_seed(seed, "meta order"))
        self.folds = fold_of(data.labeled[1], seed)

    def _everybody(self) -> Order:
        return Order(len(self.data.unlabeled), self.batch_size, stream_seed(self.seed, "unlabelled order"))

    def admit(self, admission: Tensor | None) -> None:
        """Visit the members of the pool as often as ``admission`` says from now on; None visits all alike."""
        if admission is self._admission:
            return
        self._admission = admission
        if admission is None:
            self.unlabeled = self._everybody()
        else:
            self.unlabeled = ThinnedOrder(admission, self.batch_size, stream_seed(self.seed, "unlabelled order"))

    def __call__(self, step: int, updates_weights: bool, wants_reference: bool = False) -> Batch:
        """The batch of this step.

        Args:
            step: its number.
            updates_weights: with a validation part, or a fold of the labelled batch that is held out in its place.
            wants_reference: with a validation part where there is one, and with the numbers of its examples.
        """
        x, y = self.data.labeled
        rows, index = self.labeled(step), self.unlabeled(step)
        validation, held_out, reference = None, None, rows
        if self.meta is not None and (updates_weights or wants_reference):
            assert self.data.roles.meta is not None
            x_v, y_v = self.data.roles.meta
            reference = self.meta(step)
            validation = (self._input(x_v, reference), y_v[reference].to(self.device))
        elif updates_weights:
            held_out = self._held_out(rows, step).to(self.device)
        return Batch(
            self._labeled_input(x, rows, step),
            y[rows].to(self.device),
            self._input(self.data.unlabeled, index),
            index,
            validation,
            held_out,
            reference,
        )

    def _labeled_input(self, x: Tensor, rows: Tensor, step: int) -> Tensor:
        """Labelled examples as the scenario's augmentation makes them, the same for every method."""
        inputs, augmentation = self._input(x, rows), self.data.augmentation
        if augmentation is None:
            return inputs
        return augmentation.weak(inputs, stream(self.seed, "labelled looks", step))

    def _input(self, x: Tensor, rows: Tensor) -> Tensor:
        return prepare(x[rows]).to(self.device)

    def _held_out(self, rows: Tensor, step: int) -> Tensor:
        """Cross-fitting: the rows of the labelled batch of a fold drawn for this step, and never all of them."""
        folds = self.folds[rows]
        present: list[int] = folds.unique().tolist()
        if len(present) == 1:  # of a tiny batch
            return torch.arange(len(rows)) < len(rows) // 2
        return folds.eq(present[stream_seed(self.seed, "fold", step) % len(present)])
