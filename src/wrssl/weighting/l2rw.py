"""Learning to Reweight (Ren, Zeng, Yang, Urtasun, 2018: "Learning to Reweight Examples for Robust Deep Learning")."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import BatchWeights, HypergradientRequest, Pool, Signal, State, Weighting
from wrssl.hypergrad import check_request
from wrssl.registry import register_weighting


@register_weighting("l2rw")
class LearningToReweight(Weighting):
    """A member counts as far as its gradient agrees with that of the validation set, in this batch only.

        u_j = max(⟨∇r_j, ∇L_V⟩, 0),   f_j = B u_j / Σ_k u_k,   loss = λ (1/B) Σ_j f_j r_j

    at the current parameters: the derivative by ε_j at ε = 0 of L_V after a step along Σ_j ε_j r_j, whose size cancels.
    Where no member helps, all factors are 0. It is the one-step hypergradient of WR-SSL without memory from one visit
    of a member to the next.

    The weight that is reported, and that counts in weighted batch norm, is u_j divided by the largest of its batch, at
    the last visit; 1 before the first.

    Args:
        scope: ``"network"`` (as its authors) or ``"head"``, the gradients of the last layer only.
    """

    summary: ClassVar[str] = "L2RW: members whose gradient agrees with the validation set's, batch by batch"

    def __init__(self, scope: str = "network") -> None:
        self.how = check_request(HypergradientRequest(scope=scope, J=0, P=0, alpha=1.0))
        self.table = torch.ones(0)
        self._judged: tuple[Tensor, Tensor] | None = None  # the batch of this step and its factors

    def setup(self, pool: Pool) -> None:
        """Every weight is 1 until a member is visited."""
        self.table = torch.ones(pool.size)

    def begin(self, step: int) -> None:
        """Factors belong to one step."""
        self._judged = None

    def request(self, step: int) -> HypergradientRequest:
        """In every step."""
        return self.how

    def batch(self, index: Tensor) -> BatchWeights:
        """u_j / max u at the last visit, and f_j of the batch of this step once its hypergradient is known."""
        w = self.table[index]
        known = self._judged is not None and torch.equal(self._judged[0], index)
        return BatchWeights(w, self._judged[1] if known and self._judged is not None else w, w)

    def update(self, index: Tensor, signal: Signal) -> None:
        """Rectify and normalize."""
        assert signal.hypergradient is not None
        helpful = torch.nan_to_num(-signal.hypergradient, 0.0, 0.0, 0.0).clamp_min(0)
        largest = helpful.max()
        relative = torch.where(largest > 0, helpful / largest, 0.0)  # first, so that tiny gradients do not underflow
        factors = len(index) * relative / relative.sum().clamp_min(1)  # the largest is 1, unless all are 0
        self._judged = index, factors
        self.table[index] = relative.to(self.table)

    def state_dict(self) -> State:
        """The reported weights; factors belong to one batch."""
        return {"table": self.table}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.table = state["table"].clone()
