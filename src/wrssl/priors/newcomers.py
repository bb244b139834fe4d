"""Judging examples that were not in the pool, by the prior of the pool.

The models of the prior are fitted again to the samples that they were fitted to, which are stored; that takes a few
seconds and gives the same models. A newcomer has seen none of them, as a member outside of the sample, and is scored
like one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.api import State
from wrssl.data import Projection, raw_rows
from wrssl.priors.calibrate import WeightCurve
from wrssl.priors.comparison import Comparison
from wrssl.priors.fit import Prior
from wrssl.progress import note


@dataclass(frozen=True)
class NewcomerPrior:
    """Belonging and weight of examples that nobody has seen.

    Attributes:
        comparison: the samples behind the prior.
        known: the scores of the reference.
        curve: from a score to a weight.
        projection: from values to rows; None where the rows are the values.
    """

    comparison: Comparison
    known: NDArray[np.float64]
    curve: WeightCurve
    projection: Projection | None
    _models: list[Any] = field(default_factory=list, repr=False, compare=False)  # once they are fitted

    def prior(self, x: Tensor) -> Prior:
        """That of these examples, as they are stored."""
        if not self._models:
            with note("fitting the comparison with the pool again"):
                self._models.extend(self.comparison.models())
        scale, crossed = self._models
        rows = raw_rows(x) if self.projection is None else self.projection(x)
        scores = crossed.score(scale(rows.numpy().astype(np.float32, copy=False))).astype(np.float32)
        return Prior(scores, self.known, self.curve, {}, float("nan"))

    def to_state(self) -> State:
        """As tensors; the names of the kinds are beside them (``kinds``)."""
        had = self.comparison
        numbers = torch.tensor([had.seed, *had.sizes], dtype=torch.int64)
        arrays = {"own": had.own, "labels": had.labels, "foreign": had.foreign, "known": self.known}
        arrays |= {"nodes": self.curve.nodes, "values": self.curve.values}
        state = {"numbers": numbers, **{name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}}
        if self.projection is not None:
            # Transposed, as they lie in memory: in another order the products would be rounded differently.
            state |= {"mean": self.projection.mean, "directions": self.projection.directions.T.contiguous()}
        return state

    @classmethod
    def from_state(cls, state: State, kinds: tuple[str, ...]) -> NewcomerPrior:
        """Inverse of ``to_state``."""
        seed, *sizes = state["numbers"].tolist()
        own, labels, foreign, known, nodes, values = (
            state[name].numpy() for name in ("own", "labels", "foreign", "known", "nodes", "values")
        )
        projection = Projection(state["mean"], state["directions"].T) if "mean" in state else None
        comparison = Comparison(own, labels, foreign, kinds, seed, (sizes[0], sizes[1]))
        return cls(comparison, known, WeightCurve(nodes, values), projection)
