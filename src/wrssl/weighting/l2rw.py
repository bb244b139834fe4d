"""Learning to Reweight (Ren, Zeng, Yang, Urtasun, 2018: "Learning to Reweight Examples for Robust Deep Learning")."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import HypergradientRequest, Pool, Signal, State, Weighting
from wrssl.hypergrad import check_request
from wrssl.weighting.registry import register_weighting


@register_weighting("l2rw")
class LearningToReweight(Weighting):
    """Whoever pulls in the direction of the validation set counts, in this batch only.

        u_j = max(⟨∇r_j, ∇L_V⟩, 0),   f_j = B u_j / Σ_k u_k,   loss = λ (1/B) Σ_j f_j r_j

    at the current parameters: the derivative by ε_j at ε = 0 of L_V after a step along Σ_j ε_j r_j, whose size cancels.
    Where nobody helps, all factors are 0. It is the one-step hypergradient of WR-SSL without memory from one visit of a
    member to the next.

    The weight that is reported, and that counts in weighted batch norm, is u_j divided by the largest of its batch, at
    the last visit; 1 before the first.

    Args:
        scope: ``"network"`` (as its authors) or ``"head"``, the gradients of the last layer only.
    """

    summary: ClassVar[str] = "L2RW: members whose gradient agrees with the validation set's, batch by batch"

    def __init__(self, scope: str = "network") -> None:
        self.options = check_request(HypergradientRequest(scope=scope, J=0, P=0, alpha=1.0))
        self.table = self.current = torch.ones(0)

    def setup(self, pool: Pool) -> None:
        """Nobody has been judged yet."""
        self.table = torch.ones(pool.size)

    def estimator(self, step: int) -> HypergradientRequest:
        """In every step."""
        return self.options

    def weights(self, index: Tensor) -> Tensor:
        """u_j / max u at the last visit."""
        return self.table[index]

    def factors(self, index: Tensor) -> Tensor:
        """f_j of this batch; the weights of before until it has been judged."""
        return self.current if len(self.current) == len(index) else self.table[index]

    def observe(self, index: Tensor, losses: Tensor, probabilities: Tensor) -> None:
        """A new batch."""
        self.current = torch.ones(0)

    def update(self, index: Tensor, signal: Signal) -> None:
        """Rectify and normalise."""
        assert signal.hypergradient is not None
        helpful = torch.nan_to_num(-signal.hypergradient, 0.0, 0.0, 0.0).clamp_min(0)
        largest = helpful.max()
        relative = torch.where(largest > 0, helpful / largest, 0.0)  # first, so that tiny gradients do not underflow
        self.current = len(index) * relative / relative.sum().clamp_min(1)  # the largest is 1, unless all are 0
        self.table[index] = relative.to(self.table)

    def state_dict(self) -> State:
        """The reported weights; factors belong to one batch."""
        return {"table": self.table}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.table = state["table"].clone()
