"""The default: a prior from the labels, overruled by the validation loss, and visits in proportion to the weights."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from wrssl.api import BatchWeights, HypergradientRequest, Pool, Signal, State, VisitRates
from wrssl.hypergrad import check_request
from wrssl.registry import register_weighting
from wrssl.weighting.prior import PriorWeighting
from wrssl.weighting.refinement import Refinement
from wrssl.weighting.visits import Visits


@register_weighting("wr")
class RobustWeighting(PriorWeighting):
    """The prior, moved by ``refinement.py``, followed by ``visits.py``; docs/concepts/default.md explains it.

    Args:
        prior: False begins with weight 1 for every member; the comparison then fills ``ood_score`` only.
        refine: False keeps the weights at the prior.
        admit: False visits all members equally often, and a visit counts w_j.
        floor: a member is visited at least so often as if this were its weight.
        K: number of clusters.
        L: steps between two hypergradients of the validation loss.
        P: iterations of CG.
        damping: of the curvature, as a fraction of λmax.
        options: those of ``PriorWeighting``.

    Attributes:
        patience: visits follow the evidence after so many steps,
        notable: if the log-odds of some group have moved so far.
    """

    summary: ClassVar[str] = "the default: a prior from the labels, overruled by the validation loss where it is wrong"
    guarded: ClassVar[bool] = True
    patience: ClassVar[int] = 100
    notable: ClassVar[float] = 0.5

    def __init__(
        self, prior: bool = True, refine: bool = True, admit: bool = True, floor: float = 0.05, K: int = 20, L: int = 5,
        P: int = 10, damping: float = 0.01, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        self.begins_with_prior, self.refine, self.admit, self.plan = prior, refine, admit, Visits(floor)
        how = check_request(HypergradientRequest(solver="cg", J=0, P=P, damping=damping, outer_loss="error"))
        self.refinement = Refinement(K, L, how)
        self.followed = self.refinement.evidence.shift  # the evidence that visits follow

    @property
    def visits(self) -> VisitRates | None:  # type: ignore[override]  # an attribute that is computed
        """In proportion to the weights, not below ``floor``."""
        return self.plan.rates

    def setup(self, pool: Pool) -> None:
        """Clusters, prior, visits."""
        self.pool = pool
        if self.refine:
            self.refinement.cluster(self.rows()[0], pool.seed)
        super().setup(pool)

    def compare(self, step: int) -> None:
        """Fit the prior; visits follow it."""
        super().compare(step)
        if not self.begins_with_prior and self.prior is not None:
            self.prior = self.prior.undecided()
        self._follow(self.followed)

    def begin(self, step: int) -> None:
        """Compare again where the features have changed; redistribute visits where the evidence has moved weights."""
        super().begin(step)
        shift = self.refinement.evidence.shift
        due = step > 0 and step % max(self.patience, self.pool.size // 1000) == 0
        if due and bool((shift - self.followed).abs().max() > self.notable):
            self._follow(shift)

    def _follow(self, shift: Tensor) -> None:
        self.followed = shift
        if self.admit:
            self.plan.follow(lambda index: self._weights(index, shift), self.pool.size)

    def request(self, step: int) -> HypergradientRequest | None:
        """In every L-th step."""
        return self.refinement.request(step) if self.refine else None

    def batch(self, index: Tensor) -> BatchWeights:
        """The prior, moved by the evidence; factors and presence by the visits."""
        return self.plan.batch(index, self._weights(index, self.refinement.evidence.shift))

    def _weights(self, index: Tensor, shift: Tensor) -> Tensor:
        prior = self.prior_weights(index)
        return self.refinement.refined(index, prior, shift) if self.refine else prior

    def update(self, index: Tensor, signal: Signal) -> None:
        """Collect evidence."""
        if signal.hypergradient is not None:
            prior = self.prior_weights(index)
            own = self.plan.unthinned(index, prior)
            self.refinement.evidence.collect(self.refinement.groups(index, prior), signal.hypergradient.cpu(), own)

    def clusters(self) -> Tensor | None:
        """Those of the refinement."""
        return self.refinement.cluster_of if len(self.refinement.cluster_of) else None

    def state_dict(self) -> State:
        """Prior, clusters and evidence."""
        return {**super().state_dict(), **self.refinement.state_dict(), "admitted": self.followed}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        super().load_state_dict(state)
        self.refinement.load_state_dict(state)
        self._follow(state["admitted"].clone())
