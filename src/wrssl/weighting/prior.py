"""The prior alone: a comparison of the pool with the labels, kept as it is."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.api import BatchWeights, OptionError, Pool, Rows, State, Weighting
from wrssl.judging import Belonging, NewSampleScorer, PoolJudge
from wrssl.priors import DEFAULT, ONE_CLASS, PRIORS, Prior, fit_one_class, fit_prior, scorer_from_state, scorer_of
from wrssl.registry import register_weighting
from wrssl.weighting.given import given_pair

EMBEDDINGS = ("pca", "raw", "features")


@register_weighting("prior")
class PriorWeighting(Weighting, PoolJudge):
    """w_j = P(own | x_j) by a comparison of the pool with the labels (``wrssl.priors``).

    Pixels and tables are compared by two-sample classifiers of labels and pool, rows of an embedding by one-class
    scores, unless the options below say otherwise. Neither validation labels nor a hypergradient are needed. Validation
    *examples*, where there are some, join the labeled ones as a reference.

    Args:
        embedding: where pool and labels are compared: ``"pca"`` (50 components of the raw values), ``"raw"``,
            ``"features"`` (of the network itself, first as it is initialized, then anew every ``refresh`` steps), or
            a pair of arrays of your own, one row per pool member and one per labeled example.
        kinds: registered two-sample kinds, joined by commas; ``"default"`` takes four, or the one-class scores.
        refresh: steps between two comparisons of ``"features"``; 0 compares once.
    """

    summary: ClassVar[str] = "a two-sample comparison of pool and labels decides, once and for all"

    def __init__(self, embedding: Any = "pca", kinds: str = "default", refresh: int = 0) -> None:
        if isinstance(embedding, str) and embedding not in EMBEDDINGS:
            raise OptionError(
                f"embedding must be one of {', '.join(EMBEDDINGS)} or a pair of arrays, not {embedding!r}."
            )
        chosen = DEFAULT if kinds == "default" else tuple(name.strip() for name in kinds.split(","))
        self.kinds = tuple(dict.fromkeys(chosen))
        self.free = kinds == "default" and isinstance(embedding, str) and embedding == "pca"  # nothing was asked for
        for name in self.kinds:
            PRIORS.get(name)  # an unknown name is an error now, not in the middle of a run
        if refresh < 0:
            raise OptionError(f"refresh counts steps and cannot be negative, but it is {refresh}.")
        self.embedding, self.refresh = embedding, refresh
        self.prior: Prior | None = None

    def setup(self, pool: Pool) -> None:
        """Compare the pool with the labels."""
        self.pool = pool
        if self.free and pool.embedded:
            self.kinds, self.embedding = ONE_CLASS, "raw"
        self.compare(0)

    def begin(self, step: int) -> None:
        """Compare again where the features have changed."""
        if self.refresh and step and step % self.refresh == 0 and self.embedding == "features":
            self.compare(step)

    def compare(self, step: int) -> None:
        """Fit the prior."""
        (rows, known, labels), seed = self.rows(), self.pool.seed % 2**32 + step
        if self.kinds == ONE_CLASS:
            self.prior = fit_one_class(known, labels, rows, seed)
        else:
            self.prior = fit_prior(known, labels, rows, seed, self.kinds)

    def rows(self) -> tuple[Rows, Rows, NDArray[np.int64]]:
        """The embeddings of the pool and of the reference, and the classes of the latter."""
        pool = self.pool
        assert pool.embed_known is not None
        assert pool.known_labels is not None
        labels = pool.known_labels.numpy()
        if isinstance(self.embedding, str):
            return pool.embed(self.embedding), pool.embed_known(self.embedding), labels
        members, known = given_pair(self.embedding, pool.size, len(labels), pool.reference)
        return members, known, labels[: len(known)]

    def batch(self, index: Tensor) -> BatchWeights:
        """P(own | x)."""
        return BatchWeights(self.prior_weights(index))

    def prior_weights(self, index: Tensor) -> Tensor:
        """P(own | x) of these members."""
        assert self.prior is not None
        return torch.from_numpy(self.prior.weight(index.cpu().numpy())).float()

    def belonging(self, rows: slice) -> Belonging:
        """By the prior."""
        assert self.prior is not None
        return self.prior.belonging(rows)

    def new_sample_scorer(self) -> NewSampleScorer | None:
        """The prior for other examples; None where their rows depend on the training or were given as an array."""
        transform = self.pool.transform(self.embedding) if isinstance(self.embedding, str) else None
        return None if self.prior is None or transform is None else scorer_of(self.prior, transform)

    @classmethod
    def load_new_sample_scorer(cls, state: State) -> NewSampleScorer:
        """Inverse of the scorer's ``state_dict``."""
        return scorer_from_state(state)

    def state_dict(self) -> State:
        """The prior."""
        return {} if self.prior is None else self.prior.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``; the models that ``setup`` fitted stay."""
        comparison = None if self.prior is None else self.prior.comparison
        self.prior = Prior.from_state(state, self.kinds, comparison)
