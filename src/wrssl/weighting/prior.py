"""The prior alone: what a comparison of the pool with the labels says, kept as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.api import DataError, OptionError, Pool, Rows, State, Weighting
from wrssl.data import Projection, raw_rows
from wrssl.priors import DEFAULT, KINDS, Prior, fit_prior
from wrssl.priors.keep import from_state, to_state
from wrssl.priors.newcomers import NewcomerPrior
from wrssl.weighting.given import GivenRows
from wrssl.weighting.registry import register_weighting

EMBEDDINGS = ("pca", "raw", "features")


@register_weighting("prior")
class PriorWeighting(Weighting):
    """w_j = P(own | x_j) by a stack of two-sample classifiers between the labels and the pool (``wrssl.priors``).

    No validation label and no hypergradient: what a careful person would do without training anything. Validation
    *examples*, where there are some, join the labelled ones as a reference.

    Args:
        embedding: where pool and labels are compared: ``"pca"`` (50 components of the raw values), ``"raw"``,
            ``"features"`` (of the network itself, first as it is initialised, then anew every ``refresh`` steps), or
            a pair of arrays of your own, one row per pool member and one per labelled example.
        kinds: names of ``wrssl.priors.KINDS``, joined by commas; ``"default"`` takes the four default ones.
        refresh: steps between two looks at ``"features"``; 0 never looks again.
    """

    summary: ClassVar[str] = "a two-sample comparison of pool and labels decides, once and for all"

    def __init__(self, embedding: Any = "pca", kinds: str = "default", refresh: int = 0) -> None:
        if isinstance(embedding, str) and embedding not in EMBEDDINGS:
            raise OptionError(
                f"embedding must be one of {', '.join(EMBEDDINGS)} or a pair of arrays, not {embedding!r}."
            )
        chosen = DEFAULT if kinds == "default" else tuple(name.strip() for name in kinds.split(","))
        self.kinds = tuple(dict.fromkeys(chosen))
        for name in self.kinds:
            if name not in KINDS:
                raise OptionError(f"There is no kind of prior {name!r}; choose from {', '.join(KINDS)}.")
        if refresh < 0:
            raise OptionError(f"refresh counts steps and cannot be negative, but it is {refresh}.")
        self.embedding, self.refresh = embedding, refresh
        self.prior: Prior | None = None

    def setup(self, pool: Pool) -> None:
        """Compare the pool with the labels."""
        self.pool = pool
        self.compare(0)

    def begin_step(self, step: int) -> None:
        """Compare again where the features have changed."""
        if self.refresh and step and step % self.refresh == 0 and self.embedding == "features":
            self.compare(step)

    def compare(self, step: int) -> None:
        """Fit the prior."""
        rows, known, labels = self.rows()
        self.prior = fit_prior(known, labels, rows, self.pool.seed % 2**32 + step, self.kinds)

    def rows(self) -> tuple[Rows, Rows, NDArray[np.int64]]:
        """The embeddings of the pool and of the reference, and the classes of the latter."""
        pool = self.pool
        assert pool.embed_known is not None
        assert pool.known_labels is not None
        labels = pool.known_labels.numpy()
        if isinstance(self.embedding, str):
            return pool.embed(self.embedding), pool.embed_known(self.embedding), labels
        members, known = (GivenRows(array) for array in self._pair())
        everybody = len(labels)
        labeled = everybody - pool.reference if everybody > pool.reference else everybody
        if len(members) != pool.size or len(known) not in (labeled, everybody):
            raise DataError(
                f"The embeddings have {len(members)} and {len(known)} rows, but the pool has {pool.size} members and "
                f"there are {labeled} labelled examples; give one row per member and one per labelled example."
            )
        widths = members[:1].shape[1], known[:1].shape[1]
        if widths[0] != widths[1]:
            raise DataError(f"The two embeddings have {widths[0]} and {widths[1]} columns; they must be of one kind.")
        return members, known, labels[: len(known)]

    def _pair(self) -> tuple[Any, Any]:
        if not isinstance(self.embedding, (tuple, list)) or len(self.embedding) != 2:
            raise DataError("An embedding of your own is a pair: the rows of the pool, the rows of the labelled part.")
        return self.embedding[0], self.embedding[1]

    def weights(self, index: Tensor) -> Tensor:
        """P(own | x)."""
        assert self.prior is not None
        return torch.from_numpy(self.prior.weight(index.cpu().numpy())).float()

    def belonging(self, rows: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """By the prior."""
        assert self.prior is not None
        return self.prior.p(rows), self.prior.ood_score(rows)

    def state_dict(self) -> State:
        """The prior."""
        return {} if self.prior is None else to_state(self.prior)

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        comparison = None if self.prior is None else self.prior.comparison
        self.prior = replace(from_state(state, self.kinds), comparison=comparison)

    def for_newcomers(self) -> NewcomerPrior | None:
        """The prior for other examples; None where their embedding is not known."""
        known = self.prior is not None and self.prior.comparison is not None and isinstance(self.embedding, str)
        how = getattr(self.pool.embed(self.embedding), "f", None) if known else None
        if not isinstance(how, Projection) and how is not raw_rows:
            return None
        assert self.prior is not None
        assert self.prior.comparison is not None
        projection = how if isinstance(how, Projection) else None
        return NewcomerPrior(self.prior.comparison, self.prior.known, self.prior.curve, projection)
