"""The data of every step: what training may see of a scenario, and the batch that follows from a step's number.

Validation labels have two roles: *meta* drives the weights, *select* chooses the checkpoint. ``fit`` halves the
validation set by seed, class by class, so that no example does both and every weighting selects on the same half.
``budget="paper"`` uses one set for both, as the paper does. Without a validation set the weights are driven by
cross-fitting: in each weight update one fold of the labeled batch is left out of the labeled loss and serves as
validation batch; the checkpoint is then the last one, since no label is left to choose by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from wrssl.api import Augmentation, OptionError, VisitRates
from wrssl.data import Scenario, StoredViews, prepare, spread_over_folds, stream_seed, torch_stream
from wrssl.training.order import Order, ThinnedOrder

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
    shuffled = torch.randperm(len(y), generator=torch_stream(seed, "roles"))
    by_class = shuffled[torch.argsort(y[shuffled], stable=True)]
    # Alternating within the sorted classes: each class is halved, and so is the whole.
    meta, select = by_class[0::2].sort().values, by_class[1::2].sort().values
    if len(select) == 0:  # a single validation example cannot be halved; choosing by it is worth more
        return Roles(None, validation)
    return Roles((x[meta], y[meta]), (x[select], y[select]))


def fold_of(y: Tensor, seed: int) -> Tensor:
    """The fold, 0 … FOLDS−1, of each labeled example; every class is spread over the folds."""
    shuffled = torch.randperm(len(y), generator=torch_stream(seed, "folds"))
    return torch.from_numpy(spread_over_folds(y.numpy(), shuffled.numpy(), FOLDS))


@dataclass(frozen=True)
class Batch:
    """The data of one step, ready for the network.

    Attributes:
        x_l: labeled inputs.
        y_l: their classes.
        x_u: inputs from the pool.
        index: their places in the pool.
        validation: validation inputs and classes, in steps where the weighting needs them.
        held_out: marks the labeled rows that cross-fitting takes out of the labeled loss in a weight update; where it
            is given, there is no validation batch, and those rows serve as one.
        reference: which examples the validation batch holds, or, where there is none, the labeled batch.
    """

    x_l: Tensor
    y_l: Tensor
    x_u: Tensor
    index: Tensor
    validation: tuple[Tensor, Tensor] | None = None
    held_out: Tensor | None = None
    reference: Tensor | None = None


@dataclass(frozen=True)
class LabeledBatch:
    """A batch with labels: its inputs, features and classes."""

    x: Tensor
    features: Tensor
    y: Tensor

    def rows(self, chosen: Tensor | slice) -> LabeledBatch:
        """A part of the batch."""
        return LabeledBatch(self.x[chosen], self.features[chosen], self.y[chosen])

    def detach(self) -> LabeledBatch:
        """The same without the graph behind the features."""
        return LabeledBatch(self.x, self.features.detach(), self.y)


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
    labeled_views: Sequence[Tensor] = ()
    pool_views: Sequence[Tensor] = ()

    @classmethod
    def of(cls, scenario: Scenario, seed: int, budget: str) -> TrainingData:
        """Take over what training may see, with the validation roles assigned."""
        roles, made = assign_roles(scenario.validation, seed, budget), scenario.embedding
        return cls(
            scenario.labeled,
            scenario.unlabeled,
            roles,
            scenario.num_classes,
            scenario.noise,
            scenario.vat_epsilon,
            scenario.augmentation,
            [] if made is None else [view[: len(scenario.labeled[1])] for view in made.known_views],
            () if made is None else made.pool_views,
        )

    def changes_of_pool(self, index: Tensor | slice) -> Augmentation | None:
        """How these members of the pool may be changed: by their stored views, where they have some."""
        return StoredViews(self.pool_views, index) if self.pool_views else self.augmentation

    def changes_of_labeled(self, index: Tensor) -> Augmentation | None:
        """The same for these labeled rows."""
        return StoredViews(self.labeled_views, index) if self.labeled_views else self.augmentation


class Batches:
    """The batch of every step, a function of the step alone.

    Labeled and unlabeled order depend on the seed only, so that methods and weightings are compared on the same data
    in the same order.
    """

    def __init__(self, data: TrainingData, batch_size: int, seed: int, device: torch.device) -> None:
        self.data, self.seed, self.device, self.batch_size = data, seed, device, batch_size
        self.labeled = Order(len(data.labeled[1]), batch_size, stream_seed(seed, "labelled order"))
        self._version: int | None = None  # of the visit rates
        self.unlabeled = self._equal_visits()
        meta = data.roles.meta
        self.meta = None if meta is None else Order(len(meta[1]), batch_size, stream_seed(seed, "meta order"))
        self.folds = fold_of(data.labeled[1], seed)

    def _equal_visits(self) -> Order:
        return Order(len(self.data.unlabeled), self.batch_size, stream_seed(self.seed, "unlabelled order"))

    def visit(self, rates: VisitRates | None) -> None:
        """Visit the members of the pool at these rates from now on; None visits all equally often."""
        version = None if rates is None else rates.version
        if version == self._version:
            return
        self._version = version
        if rates is None:
            self.unlabeled = self._equal_visits()
        else:
            self.unlabeled = ThinnedOrder(rates.rate, self.batch_size, stream_seed(self.seed, "unlabelled order"))

    def __call__(self, step: int, updates_weights: bool, wants_reference: bool = False) -> Batch:
        """The batch of this step.

        Args:
            step: its number.
            updates_weights: with a validation part, or a fold of the labeled batch that is held out in its place.
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
        """Labeled examples as the scenario's augmentation makes them, the same for every method."""
        inputs, augmentation = self._input(x, rows), self.data.changes_of_labeled(rows)
        if augmentation is None:
            return inputs
        return augmentation.weak(inputs, torch_stream(self.seed, "labelled looks", step))

    def _input(self, x: Tensor, rows: Tensor) -> Tensor:
        return prepare(x[rows]).to(self.device)

    def _held_out(self, rows: Tensor, step: int) -> Tensor:
        """Cross-fitting: the rows of the labeled batch of a fold drawn for this step, and never all of them."""
        folds = self.folds[rows]
        present: list[int] = folds.unique().tolist()
        if len(present) == 1:  # of a tiny batch
            return torch.arange(len(rows)) < len(rows) // 2
        return folds.eq(present[stream_seed(self.seed, "fold", step) % len(present)])
