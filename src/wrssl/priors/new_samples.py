"""Scoring examples that were not in the pool, by the prior of the pool.

Like a member outside of the samples, a new example has seen none of the models and is scored by all of them. A run
directory keeps the samples and what was drawn for them, as tensors; a scorer that is read back fits the models again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.api import State
from wrssl.data import Directions, Projection, raw_rows, transform_from_state
from wrssl.errors import DataError, OptionError
from wrssl.judging import Belonging, NewSampleScorer
from wrssl.priors.calibrate import WeightCurve, belonging
from wrssl.priors.crossfit import Comparison
from wrssl.priors.fit import Prior
from wrssl.priors.kinds import Labels
from wrssl.priors.one_class import OneClass, OneClassScorer
from wrssl.priors.samples import Folds, Samples, draw_folds, shuffled
from wrssl.registry import PRIORS

RowTransform: TypeAlias = Callable[[Tensor], Tensor]  # raw_rows, Directions or a Projection, which can be stored


class PriorScorer:
    """The ``NewSampleScorer`` of a prior.

    Args:
        comparison: the samples and models behind the prior.
        known: the scores of the reference.
        curve: from a score to a weight.
        transform: from stored values to rows: ``raw_rows``, ``Directions`` or a ``Projection``.
    """

    def __init__(
        self, comparison: Comparison, known: NDArray[np.float64], curve: WeightCurve, transform: RowTransform
    ) -> None:
        if transform is not raw_rows and not isinstance(transform, (Directions, Projection)):
            raise OptionError(
                f"New samples can be scored with raw_rows, Directions or a Projection, not {transform!r}."
            )
        self.comparison, self.known, self.curve, self.transform = comparison, known, curve, transform

    @classmethod
    def of(cls, prior: Prior, transform: RowTransform) -> PriorScorer | None:
        """That of a fitted prior; None where too few rows, or a state without samples, leave it without models."""
        fitted = prior.comparison
        return cls(fitted, prior.known, prior.curve, transform) if isinstance(fitted, Comparison) else None

    def __call__(self, x: Tensor) -> Belonging:
        """p, ood_score and weight of these examples, given as the pool was."""
        rows = self.transform(x).numpy().astype(np.float32, copy=False)
        # Rounded like the scores of the pool.
        scores = self.comparison.models(rows).astype(np.float32).astype(np.float64)
        return belonging(scores, self.known, self.curve)

    def state_dict(self) -> State:
        """Samples, all that was drawn for them, calibration and transform, as tensors."""
        samples = self.comparison.samples
        arrays = {"own": samples.known, "labels": samples.labels, "foreign": samples.pool, "known": self.known}
        arrays |= {"own folds": samples.known_folds, "foreign folds": samples.pool_folds}
        arrays |= {"nodes": self.curve.nodes, "values": self.curve.values}
        state = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        state |= {"seed": torch.tensor([samples.seed]), "kinds": tensor_of_names(self.comparison.kinds)}
        if isinstance(self.transform, (Directions, Projection)):
            state |= self.transform.state_dict()
        return state

    @classmethod
    def from_state(cls, state: State) -> PriorScorer:
        """Inverse of ``state_dict``.

        A state of version 0.1.0 has the seed of all draws in the place of what was drawn, and the names of its kinds
        beside it; the reader of its file adds them as ``state["kinds"] = tensor_of_names(names)``.
        """
        kinds = names_of_tensor(state["kinds"])
        for name in kinds:
            if name not in PRIORS.names():
                raise DataError(
                    f"The stored prior uses the kind {name!r}, which is not registered; import the file that registers "
                    "it, or give it as a plugin."
                )
        own, labels, foreign, known, nodes, values = (
            state[name].numpy() for name in ("own", "labels", "foreign", "known", "nodes", "values")
        )
        if "numbers" in state:
            seed, *sizes = state["numbers"].tolist()
            drawn = draws_of_version_0_1(seed, sizes, labels, len(foreign))
        else:
            drawn = int(state["seed"]), state["own folds"].numpy(), state["foreign folds"].numpy()
        transform = transform_from_state(state)
        comparison = Comparison(Samples(own, labels, foreign, *drawn), kinds)
        return cls(comparison, known, WeightCurve(nodes, values), transform)


def scorer_of(prior: Prior, transform: RowTransform) -> NewSampleScorer | None:
    """What scores new samples by this prior, two-sample or one-class; None where nothing was fitted."""
    if isinstance(prior.comparison, OneClass) and isinstance(transform, Directions):
        return OneClassScorer(prior.comparison, prior.known, prior.curve, transform)
    return PriorScorer.of(prior, transform)


def scorer_from_state(state: State) -> NewSampleScorer:
    """The scorer that was stored."""
    return OneClassScorer.from_state(state) if "one-class" in state else PriorScorer.from_state(state)


def draws_of_version_0_1(seed: int, sizes: Sequence[int], labels: Labels, members: int) -> tuple[int, Folds, Folds]:
    """The seed of the kinds and the folds of a state of version 0.1.0, which stored the seed of the generator only.

    Args:
        seed: of the generator.
        sizes: numbers of references and of pool members that the samples were drawn from.
        labels: of the references in the sample.
        members: rows of the pool in the sample.
    """
    random = np.random.default_rng(seed)
    for size in sizes:  # the two samples came from the same generator, before the folds
        shuffled(size, random)
    return draw_folds(labels, members, random)


def tensor_of_names(names: Sequence[str]) -> Tensor:
    """Names as bytes, for files that hold tensors only."""
    return torch.from_numpy(np.frombuffer("\n".join(names).encode(), dtype=np.uint8).copy())


def names_of_tensor(tensor: Tensor) -> tuple[str, ...]:
    """Inverse of ``tensor_of_names``."""
    return tuple(tensor.numpy().tobytes().decode().split("\n"))
