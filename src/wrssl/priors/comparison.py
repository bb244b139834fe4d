"""The two samples behind a prior, from which its models follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from wrssl.priors.cross import Crossed, cross
from wrssl.priors.samples import Matrix, Samples, shuffled
from wrssl.priors.standard import Standard


@dataclass(frozen=True)
class Comparison:
    """What the models are fitted to. They are functions of it, so that storing it stores them, without a pickle.

    Attributes:
        own: rows of the reference.
        labels: their classes.
        foreign: rows of the pool.
        kinds: names from ``KINDS``.
        seed: of samples, folds and kinds.
        sizes: numbers of references and of pool members that the rows were drawn from.
    """

    own: Matrix
    labels: NDArray[np.int64]
    foreign: Matrix
    kinds: tuple[str, ...]
    seed: int
    sizes: tuple[int, int]

    def models(self) -> tuple[Standard, Crossed]:
        """Fit them: the scale of the rows, and what scores scaled rows."""
        random = np.random.default_rng(self.seed)
        for size in self.sizes:  # the two samples were drawn from the same stream, before
            shuffled(size, random)
        with threadpool_limits(1):
            scale = Standard.of(self.own, self.foreign)
            return scale, cross(Samples(scale(self.own), self.labels, scale(self.foreign)), self.kinds, random)
