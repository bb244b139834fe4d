"""What Meta-Weight-Net and DS3L share: a network gives the weights, and one virtual training step teaches it."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from wrssl.api import HypergradientRequest, Pool, Signal, State, Weighting
from wrssl.weighting.judge_net import JudgeNet


class AmortisedWeighting(Weighting):
    """w_j = V(a_j; Φ) for a description a_j of the member, with Φ taught by dL_V/dw after one virtual step.

    The table keeps what V said at a member's last visit, for weighted batch norm before the next; at the end of
    training V judges the whole pool anew.

    Args:
        options: the virtual step and its validation loss.
        hidden: width of V.
        meta_lr: learning rate of V.
        decay: L2 penalty of V.
    """

    def __init__(self, options: HypergradientRequest, hidden: int, meta_lr: float, decay: float) -> None:
        self.options, self.hidden, self.meta_lr, self.decay = options, hidden, meta_lr, decay
        self.table, self.seen = torch.ones(0), torch.zeros(0, 0)

    @abstractmethod
    def describe(self, losses: Tensor, probabilities: Tensor) -> Tensor:
        """a, shape (B, inputs)."""

    @abstractmethod
    def inputs(self, num_classes: int) -> int:
        """Length of a."""

    def through(self, index: Tensor, gradient: Tensor) -> Tensor:
        """dL_V/dw from dL_V/df; the same where the factors are the weights."""
        return gradient

    def setup(self, pool: Pool) -> None:
        """A new network, and nobody judged yet."""
        self.net = JudgeNet(self.inputs(pool.num_classes), self.hidden, self.meta_lr, self.decay, pool.seed)
        self.table = torch.ones(pool.size)

    def estimator(self, step: int) -> HypergradientRequest:
        """In every step."""
        return self.options

    def weights(self, index: Tensor) -> Tensor:
        """V at the last visit."""
        return self.table[index]

    def observe(self, index: Tensor, losses: Tensor, probabilities: Tensor) -> None:
        """Judge the batch."""
        self.seen = self.describe(losses, probabilities)
        self._judge(index)

    def update(self, index: Tensor, signal: Signal) -> None:
        """Teach V, then judge the batch again."""
        assert signal.hypergradient is not None
        self.net.descend(self.seen, self.through(index, signal.hypergradient))
        self._judge(index)

    @torch.no_grad()
    def judged(self, losses: Tensor, probabilities: Tensor) -> Tensor:
        """V of any members."""
        return self.net(self.describe(losses, probabilities))

    @torch.no_grad()
    def _judge(self, index: Tensor) -> None:
        self.table[index] = self.net(self.seen).to(self.table)

    def state_dict(self) -> State:
        """V, its optimiser and the table."""
        return {"table": self.table, **self.net.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``; ``setup`` comes first."""
        self.table = state["table"].clone()
        self.net.load_state_dict(state)
