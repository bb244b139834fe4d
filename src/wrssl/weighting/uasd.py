"""UASD (Chen, Zhu, Li, Gong, 2020: "Semi-Supervised Learning under Class Distribution Mismatch")."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import BatchWeights, Pool, Signal, State, Weighting
from wrssl.registry import register_weighting

FIRST_THRESHOLD = 0.9  # before a validation example has been seen


class Accumulated:
    """Running means of predictions: q_i = (1/t) Σ_s p_i^s over the t visits of example i, and their confidence.

    Half precision suffices for a mean of probabilities and keeps the table small: 2 C + 4 bytes per example.
    """

    def __init__(self, size: int, classes: int) -> None:
        self.mean = torch.zeros(size, classes, dtype=torch.float16)
        self.visits = torch.zeros(size, dtype=torch.int32)

    def add(self, index: Tensor, probabilities: Tensor) -> Tensor:
        """Count one more visit of these examples; returns max_c q_ic of each. One that is named twice counts once."""
        index = index.to(self.visits.device)
        self.visits[index] += 1
        old, new = self.mean[index].float(), probabilities.to(self.mean.device, torch.float32)
        now = (old + (new - old) / self.visits[index].unsqueeze(1)).half()
        self.mean[index] = now
        return now.float().amax(1)  # of what is stored: the threshold is made of such numbers, and ties must stay ties

    def confidence(self) -> float:
        """The mean of max_c q_ic over the examples that have been visited."""
        visited = self.visits > 0
        return float(self.mean[visited].float().amax(1).mean()) if bool(visited.any()) else FIRST_THRESHOLD


@register_weighting("uasd")
class UASD(Weighting):
    """A member counts while the average of its predictions is at least as confident as validation examples are.

        q_j = (1/t) Σ_s p_j^s over the visits of member j,   c_j = max_c q_jc,   w_j = 1[c_j ≥ τ]
        τ = the mean of c over the validation examples that have been visited, updated in every step

    UASD also replaces the base loss by the cross-entropy with q_j and averages over the selected members. As a
    weighting it leaves the base loss alone, so that it can be compared with the others on the same method, and takes
    the mean over the batch as they do. Without a validation set the labeled examples set τ.
    """

    summary: ClassVar[str] = "UASD: members whose accumulated prediction is as confident as validation examples"
    wants_reference: ClassVar[bool] = True

    def setup(self, pool: Pool) -> None:
        """Every weight is 1 until a member is visited."""
        self.members = Accumulated(pool.size, pool.num_classes)
        self.known = Accumulated(pool.reference, pool.num_classes)
        self.table = torch.ones(pool.size)

    def batch(self, index: Tensor) -> BatchWeights:
        """1 or 0, by the threshold at the last visit."""
        return BatchWeights(self.table[index])

    def update(self, index: Tensor, signal: Signal) -> None:
        """Accumulate, move the threshold, decide."""
        assert signal.reference is not None
        self.known.add(*signal.reference)
        confidence = self.members.add(index, signal.probabilities)
        self.table[index] = (confidence >= self.known.confidence()).to(self.table)

    def state_dict(self) -> State:
        """Both tables of accumulated predictions, and the decisions."""
        tables = {"members": self.members, "known": self.known}
        parts = {f"{name}.{key}": value for name, table in tables.items() for key, value in vars(table).items()}
        return {"table": self.table, **parts}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``; ``setup`` comes first."""
        self.table = state["table"].clone()
        for name, table in (("members", self.members), ("known", self.known)):
            table.mean, table.visits = state[f"{name}.mean"].clone(), state[f"{name}.visits"].clone()
