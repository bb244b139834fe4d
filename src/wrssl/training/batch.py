"""The data of one step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """The data of one step, ready for the network.

    Attributes:
        x_l: labelled inputs.
        y_l: their classes.
        x_u: inputs from the pool.
        index: their places in the pool.
        validation: validation inputs and classes, in steps where the weighting needs them.
        held_out: marks the labelled rows that cross-fitting takes out of the labelled loss in a weight update; where it
            is given, there is no validation batch, and those rows serve as one.
        reference: which examples the validation batch holds, or, where there is none, the labelled batch.
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
