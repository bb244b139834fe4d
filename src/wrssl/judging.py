"""What a weighting may say about pool members beyond their weights; ``PoolJudge`` is the optional second contract.

A weighting that is no ``PoolJudge`` is complete: whether members belong is then judged by the network's energy.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wrssl.api import State
from wrssl.errors import OptionError


class Belonging(NamedTuple):
    """Whether examples belong, one number each.

    Attributes:
        p: conformal p-value, small where hardly a reference example is as strange.
        ood_score: in [0, 1], 1 = foreign.
        weight: in [0, 1].
    """

    p: NDArray[np.float64]
    ood_score: NDArray[np.float64]
    weight: NDArray[np.float64]


class NewSampleScorer(Protocol):
    """Judges examples outside of the pool, given as the pool's values were."""

    def __call__(self, x: Tensor) -> Belonging:
        """One row of each array per example."""

    def state_dict(self) -> State:
        """What ``PoolJudge.load_new_sample_scorer`` needs to make the same scorer again."""


class PoolJudge:
    """Base class, beside ``Weighting``, of a weighting that can judge the pool. Every method is optional."""

    def belonging(self, rows: slice) -> Belonging | None:
        """Of these members; None leaves the judgement to the network."""
        return None

    def clusters(self) -> Tensor | None:
        """The cluster of each member, shape ``(M,)``."""
        return None

    def new_sample_scorer(self) -> NewSampleScorer | None:
        """For examples outside of the pool; None leaves the judgement to the network."""
        return None

    @classmethod
    def load_new_sample_scorer(cls, state: State) -> NewSampleScorer:
        """Inverse of ``NewSampleScorer.state_dict``."""
        raise OptionError(f"{cls.__name__} stores a scorer and cannot read it; give it load_new_sample_scorer.")
