"""WR-SSL with weights shared over clusters (the paper's CRW)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from wrssl.api import DataError, HypergradientRequest, OptionError, Pool, State
from wrssl.hypergrad import segment_mean, segment_sum
from wrssl.judging import PoolJudge
from wrssl.registry import register_weighting
from wrssl.weighting.bilevel import BilevelWeighting
from wrssl.weighting.given import GivenRows
from wrssl.weighting.kmeans import kmeans

EMBEDDINGS = ("pca", "raw", "features")


@register_weighting("wr-cluster")
class ClusterWeighting(BilevelWeighting, PoolJudge):
    """Algorithm 2 with w_j = w_k(j) for the K clusters of a k-means over the pool.

    The chain rule gives g_k = Σ_{j in k} g_j; the step uses the mean over the members of the batch instead, so that it
    depends neither on K nor on the share of a cluster (``compat="paper"`` uses the sum).

    Args:
        K: number of clusters.
        embedding: what is clustered: ``"pca"`` (50 components of the raw values), ``"raw"``, ``"features"`` (of the
            network itself, taken at step ``warmup``; all weights are 1 until then), or an array with one row per
            member, for example from a pre-trained network; it may be a memory map.
        warmup: the step at which ``"features"`` are taken.
        options: those of ``BilevelWeighting``.
    """

    summary: ClassVar[str] = "the paper's WR-SSL with weights shared over k-means clusters"

    def __init__(self, K: int = 20, embedding: Any = "pca", warmup: int = 200, **options: Any) -> None:
        super().__init__(**options)
        if K < 1:
            raise OptionError(f"K counts clusters and must be at least 1, not {K}.")
        if isinstance(embedding, str) and embedding not in EMBEDDINGS:
            raise OptionError(f"embedding must be one of {', '.join(EMBEDDINGS)} or an array, not {embedding!r}.")
        self.K, self.embedding, self.warmup = K, embedding, warmup
        self.cluster_of = torch.zeros(0, dtype=torch.uint8)  # empty until there are clusters

    @property
    def _late(self) -> bool:
        return isinstance(self.embedding, str) and self.embedding == "features" and self.warmup > 0

    def setup(self, pool: Pool) -> None:
        """Cluster the pool, unless the features are still to be learned."""
        self.pool = pool
        self.table, self.cluster_of = torch.ones(min(self.K, pool.size)), self.cluster_of[:0]
        if not self._late:
            self._cluster()

    def begin(self, step: int) -> None:
        """Cluster the network's own features when they have been learned."""
        if self._late and step == self.warmup:
            self._cluster()

    def _cluster(self) -> None:
        named = isinstance(self.embedding, str)
        rows = self.pool.embed(self.embedding) if named else GivenRows(self.embedding)
        if len(rows) != self.pool.size:
            raise DataError(
                f"The embedding has {len(rows)} rows but the pool has {self.pool.size} members; "
                "give one row per member, in pool order."
            )
        self.cluster_of = kmeans(rows, len(self.table), self.pool.seed)

    def request(self, step: int) -> HypergradientRequest | None:
        """None before there are clusters."""
        return None if self._late and step < self.warmup else super().request(step)

    def entries(self, index: Tensor) -> Tensor:
        """The cluster of each member; before there are any, one for all."""
        return self.cluster_of[index].long() if len(self.cluster_of) else torch.zeros_like(index)

    def gradient_of_rows(self, index: Tensor, hypergradient: Tensor) -> tuple[Tensor, Tensor]:
        """The clusters that occur in the batch, with the mean (or, as in the paper, the sum) of their gradients."""
        cluster = self.entries(index)
        rows = cluster.unique()
        if self.descent.plain:
            return rows, segment_sum(hypergradient, cluster, len(self.table))[rows]
        return rows, segment_mean(hypergradient, cluster, len(self.table))[0][rows]

    def clusters(self) -> Tensor | None:
        """The cluster of each member, in a small type (``.long()`` makes indices of it); None before there are any."""
        return self.cluster_of if len(self.cluster_of) else None

    def state_dict(self) -> State:
        """The table, its running average and the clusters."""
        return {**super().state_dict(), "cluster_of": self.cluster_of}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        super().load_state_dict(state)
        self.cluster_of = state["cluster_of"].clone()
