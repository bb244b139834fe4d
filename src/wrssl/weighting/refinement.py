"""Where the validation loss may overrule the prior: evidence is shared in groups, and moves log-odds.

Groups are the K clusters of a k-means over the pool, each divided into three by the prior π (foreign, unclear, own), so
that one half of a cluster can be found useful and the other not. With σ the logistic function, c_g the evidence about
a group (``evidence.py``) and ε = 0.02,

    w_j = [σ(logit(ε + (1 − 2ε) π_j) + c_g(j)) − ε] / (1 − 2ε), cut to [0, 1]:

the prior itself where there is no evidence, and any other weight if there is enough of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.api import HypergradientRequest, OptionError, Rows, State
from wrssl.weighting.evidence import Evidence
from wrssl.weighting.kmeans import kmeans

LEVELS = 3
SOFT = 0.02  # ε: a prior of 0 or 1 can be overruled as if it were this far from it


class Refinement:
    """Clusters, evidence, and the weights that follow from them.

    Args:
        clusters: K.
        every: L, the steps between two looks at the validation loss.
        options: how its hypergradient is estimated.
    """

    def __init__(self, clusters: int, every: int, options: HypergradientRequest) -> None:
        if clusters < 1 or every < 1:
            raise OptionError(f"K counts clusters and L steps; both must be at least 1 (K={clusters}, L={every}).")
        self.K, self.every, self.options = clusters, every, options
        self.evidence = Evidence(clusters * LEVELS)
        self.cluster_of = torch.zeros(0, dtype=torch.uint8)

    def cluster(self, rows: Rows, seed: int) -> None:
        """Find the clusters; nothing is known about them yet."""
        self.evidence = Evidence(self.K * LEVELS)
        self.cluster_of = kmeans(rows, min(self.K, len(rows)), seed)

    def estimator(self, step: int) -> HypergradientRequest | None:
        """The options in every L-th step."""
        return self.options if step % self.every == 0 else None

    def groups(self, index: Tensor, prior: Tensor) -> Tensor:
        """The group of each of these members."""
        level = (prior * LEVELS).long().clamp_(max=LEVELS - 1)
        return self.cluster_of[index].long() * LEVELS + level

    def refined(self, index: Tensor, prior: Tensor, shift: Tensor) -> Tensor:
        """The weights of these members with the evidence ``shift``."""
        odds = torch.logit(SOFT + (1 - 2 * SOFT) * prior) + shift[self.groups(index, prior)]
        return ((odds.sigmoid() - SOFT) / (1 - 2 * SOFT)).clamp(0, 1)

    def state_dict(self) -> State:
        """Clusters and evidence."""
        return {"cluster_of": self.cluster_of, **self.evidence.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.cluster_of = state["cluster_of"].clone()
        self.evidence.load_state_dict(state)
