"""The default: a prior says who belongs, the validation loss may overrule it, and visits go to those who count."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from wrssl.api import HypergradientRequest, Pool, Signal, State
from wrssl.hypergrad import check_request
from wrssl.weighting.prior import PriorWeighting
from wrssl.weighting.refinement import Refinement
from wrssl.weighting.registry import register_weighting
from wrssl.weighting.visits import Visits

PATIENCE, NOTABLE = 100, 0.5  # visits are dealt anew after so many steps, if some group's log-odds moved so far
NOTHING = torch.zeros(0), torch.zeros(0)


@register_weighting("wr")
class RobustWeighting(PriorWeighting):
    """The prior, moved by ``refinement.py``, followed by ``visits.py``; docs/concepts/default.md has the whole story.

    Args:
        prior: False begins with weight 1 for everybody; the comparison with the labels then fills ``ood_score`` only.
        refine: False keeps the weights at the prior.
        admit: False visits everybody alike, and a visit counts w_j.
        floor: a member is visited at least so often as if this were its weight.
        K: number of clusters.
        L: steps between two looks at the validation loss.
        P: iterations of CG.
        damping: of the curvature, as a fraction of λmax.
        options: those of ``PriorWeighting``.
    """

    summary: ClassVar[str] = "the default: a prior from the labels, overruled by the validation loss where it is wrong"

    def __init__(
        self, prior: bool = True, refine: bool = True, admit: bool = True, floor: float = 0.05, K: int = 20, L: int = 5,
        P: int = 10, damping: float = 0.01, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        self.begins_with_prior, self.refine, self.admit, self.visits = prior, refine, admit, Visits(floor)
        how = check_request(HypergradientRequest(solver="cg", J=0, P=P, damping=damping, outer_loss="error"))
        self.refinement = Refinement(K, L, how)
        self.admitted = self.refinement.evidence.shift  # the evidence that visits follow
        self._looked = NOTHING

    def setup(self, pool: Pool) -> None:
        """Clusters, prior, admission."""
        self.pool = pool
        if self.refine:
            self.refinement.cluster(self.rows()[0], pool.seed)
        super().setup(pool)

    def compare(self, step: int) -> None:
        """Fit the prior; visits follow it."""
        super().compare(step)
        if not self.begins_with_prior and self.prior is not None:
            self.prior = self.prior.undecided()
        self._follow(self.admitted)

    def begin_step(self, step: int) -> None:
        """Compare again where the features have changed; send visits where the evidence has moved weights."""
        super().begin_step(step)
        shift = self.refinement.evidence.shift
        due = step > 0 and step % max(PATIENCE, self.pool.size // 1000) == 0
        if due and bool((shift - self.admitted).abs().max() > NOTABLE):
            self._follow(shift)

    def _follow(self, shift: Tensor) -> None:
        self.admitted, self._looked = shift, NOTHING
        if self.admit:
            self.visits.deal(lambda index: self._weights(index, shift), self.pool.size)

    def admission(self) -> Tensor | None:
        """By the weights, not below ``floor``."""
        return self.visits.admission

    def estimator(self, step: int) -> HypergradientRequest | None:
        """In every L-th step."""
        return self.refinement.estimator(step) if self.refine else None

    def weights(self, index: Tensor) -> Tensor:
        """The prior, moved by the evidence."""
        if self._looked[0] is not index:  # several parts of a step ask about the same batch
            self._looked = index, self._weights(index, self.refinement.evidence.shift)
        return self._looked[1]

    def _weights(self, index: Tensor, shift: Tensor) -> Tensor:
        prior = super().weights(index)
        return self.refinement.refined(index, prior, shift) if self.refine else prior

    def presence(self, index: Tensor) -> Tensor:
        """What a visit counts in batch statistics."""
        return self.visits.presence(index, self.weights(index))

    def factors(self, index: Tensor) -> Tensor:
        """The same in units of its mean."""
        return self.visits.factors(index, self.weights(index))

    def update(self, index: Tensor, signal: Signal) -> None:
        """Collect evidence."""
        if signal.hypergradient is not None:
            prior = super().weights(index)
            own = self.visits.unthinned(index, prior)
            self.refinement.evidence.collect(self.refinement.groups(index, prior), signal.hypergradient.cpu(), own)
            self._looked = NOTHING

    def clusters(self) -> Tensor | None:
        """Those of the refinement."""
        return self.refinement.cluster_of if len(self.refinement.cluster_of) else None

    def state_dict(self) -> State:
        """Prior, clusters and evidence."""
        return {**super().state_dict(), **self.refinement.state_dict(), "admitted": self.admitted}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        super().load_state_dict(state)
        self.refinement.load_state_dict(state)
        self._follow(state["admitted"].clone())
