"""The default: a prior says who belongs, the validation loss may overrule it, and visits go to those who count."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from wrssl.api import OptionError, Pool, Signal, State
from wrssl.hypergrad.options import HypergradientOptions
from wrssl.weighting.evidence import Evidence
from wrssl.weighting.kmeans import kmeans
from wrssl.weighting.prior import PriorWeighting
from wrssl.weighting.registry import register_weighting

PATIENCE, NOTABLE = 100, 0.5  # every so many steps visits are dealt anew, if some group's log-odds moved that far
CHUNK = 100_000
LEVELS = 3  # of the prior within a cluster: foreign, unclear, own
SCARCE = 0.1  # a batch whose members count less than this on average is not blown up to full size
SOFT = 0.02  # a prior of 0 or 1 can be overruled as if it were this far from it


@register_weighting("wr")
class RobustWeighting(PriorWeighting):
    """Prior, refinement and admission.

    1. The **prior** π_j (``PriorWeighting``).
    2. **Refinement**. Members share evidence in groups: the K clusters of a k-means, each divided into three by the
       prior (foreign, unclear, own). Every L steps the hypergradient of the last layer says how the validation loss
       would change with the weight of each member of the batch; ``evidence.py`` makes a number c_g of it that is 0
       until a group is surely better or worse than the average. With σ the logistic function and ε = 0.02,

           w_j = [σ(logit(ε + (1 − 2ε) π_j) + c_g(j)) − ε] / (1 − 2ε), cut to [0, 1]:

       the prior itself where there is no evidence, and any other weight if there is enough of it.
    3. **Admission**. A member with a small weight is visited less often, a_j = max(w_j, ``floor``), and a visit counts
       w_j / a_j, at most 1, in units of the mean over its batch: the contribution of each member is what its weight
       says, the batch is full of those who count, as if somebody had cleaned the pool, and the validation loss can
       still say that a strange member helps. Visits are dealt anew when the evidence has moved.

    Args:
        embedding: as for ``prior``.
        kinds: as for ``prior``.
        refresh: as for ``prior``.
        refine: False keeps the weights at the prior.
        admit: False visits everybody alike.
        floor: the smallest admission.
        K: number of clusters.
        L: steps between two updates.
        J: look-ahead steps on a copy of the last layer.
        P: iterations of CG.
        damping: of the curvature, as a fraction of λmax.
    """

    summary: ClassVar[str] = "the default: a prior from the labels, overruled by the validation loss where it is wrong"

    def __init__(
        self,
        embedding: Any = "pca",
        kinds: str = "default",
        refresh: int = 0,
        refine: bool = True,
        admit: bool = True,
        floor: float = 0.05,
        K: int = 20,
        L: int = 5,
        J: int = 0,
        P: int = 10,
        damping: float = 0.01,
    ) -> None:
        super().__init__(embedding, kinds, refresh)
        if not 0 < floor <= 1:
            raise OptionError(f"floor is the smallest admission and must be above 0 and at most 1, not {floor}.")
        if K < 1 or L < 1:
            raise OptionError(f"K counts clusters and L steps; both must be at least 1 (K={K}, L={L}).")
        self.refine, self.admit, self.floor, self.K, self.every = refine, admit, floor, K, L
        self.options = HypergradientOptions(solver="cg", J=J, P=P, damping=damping)
        self.evidence, self.admitted = Evidence(K * LEVELS), torch.zeros(K * LEVELS)
        self.cluster_of = torch.zeros(0, dtype=torch.uint8)
        self._admission: Tensor | None = None
        self._looked = torch.zeros(0), torch.zeros(0)

    def setup(self, pool: Pool) -> None:
        """Clusters, prior, admission."""
        self.pool = pool
        if self.refine:
            self.cluster_of = kmeans(self.rows()[0], min(self.K, pool.size), pool.seed)
        super().setup(pool)

    def compare(self, step: int) -> None:
        """Fit the prior; visits follow it."""
        super().compare(step)
        self._admit()

    def begin_step(self, step: int) -> None:
        """Compare again where the features have changed; send visits where the evidence has moved weights."""
        super().begin_step(step)
        moved = (self.evidence.shift - self.admitted).abs().max()
        if step and step % PATIENCE == 0 and moved > NOTABLE:
            self.admitted = self.evidence.shift.clone()
            self._admit()

    def _admit(self) -> None:
        """One look at the whole pool; in a training without evidence against the prior the only one."""
        if self.admit:
            parts = [self._refined(index, self.admitted) for index in torch.arange(self.pool.size).split(CHUNK)]
            self._admission = torch.cat(parts).clamp_(self.floor, 1.0)

    def admission(self) -> Tensor | None:
        """By the weights, not below ``floor``."""
        return self._admission

    def estimator(self, step: int) -> HypergradientOptions | None:
        """In every L-th step."""
        return self.options if self.refine and step % self.every == 0 else None

    def weights(self, index: Tensor) -> Tensor:
        """The prior, moved by the evidence."""
        if self._looked[0] is not index:  # several parts of a step ask about the same batch
            self._looked = index, self._refined(index, self.evidence.shift)
        return self._looked[1]

    def _refined(self, index: Tensor, shift: Tensor) -> Tensor:
        prior = super().weights(index)
        if not self.refine:
            return prior
        odds = torch.logit(SOFT + (1 - 2 * SOFT) * prior) + shift[self.groups(index, prior)]
        return ((odds.sigmoid() - SOFT) / (1 - 2 * SOFT)).clamp(0, 1)

    def groups(self, index: Tensor, prior: Tensor) -> Tensor:
        """The group of each member."""
        level = (prior * LEVELS).long().clamp_(max=LEVELS - 1)
        return self.cluster_of[index].long() * LEVELS + level

    def share(self, index: Tensor) -> Tensor:
        """What a visit of each member counts: w / a, at most 1."""
        w = self.weights(index)
        return w if self._admission is None else (w / self._admission[index]).clamp_(max=1.0)

    def factors(self, index: Tensor) -> Tensor:
        """The shares in units of their mean over the batch, so that the unlabelled term keeps its coefficient."""
        share = self.share(index)
        return share / share.mean().clamp_min(SCARCE) if self.admit else share

    def update(self, index: Tensor, signal: Signal) -> None:
        """Collect evidence."""
        if signal.hypergradient is not None:
            prior = super().weights(index)
            self.evidence.collect(self.groups(index, prior), signal.hypergradient.cpu(), self.share(index))
            self._looked = torch.zeros(0), torch.zeros(0)

    def clusters(self) -> Tensor | None:
        """Those of the refinement."""
        return self.cluster_of if len(self.cluster_of) else None

    def state_dict(self) -> State:
        """Prior, clusters and evidence."""
        return {
            **super().state_dict(),
            "cluster_of": self.cluster_of,
            **self.evidence.state_dict(),
            "admitted": self.admitted,
        }

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        super().load_state_dict(state)
        self.cluster_of = state["cluster_of"].clone()
        self.evidence.load_state_dict(state)
        self.admitted = state["admitted"].clone()
        self._admit()
