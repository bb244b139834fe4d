"""What Meta-Weight-Net and DS3L share: a small network gives the weights, and one virtual training step teaches it.

    V(a) = σ(W₂ relu(W₁ a + b₁) + b₂)

a describes a member by its loss or its prediction. The parameters Φ of V descend the validation loss through the
weights: dL_V/dΦ = Σ_j (dL_V/dw_j) dV(a_j)/dΦ, by Adam.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor

from wrssl.api import BatchWeights, HypergradientRequest, Pool, PredictionWeighting, Signal, State


class WeightNet:
    """V and its optimizer.

    Args:
        inputs: numbers per member.
        hidden: width of the hidden layer.
        lr: learning rate of Adam.
        decay: L2 penalty, added to the gradient.
        seed: of the initial parameters, uniform in ±1/√(number of inputs of the layer).
    """

    def __init__(self, inputs: int, hidden: int, lr: float, decay: float, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)

        def uniform(*shape: int, fan: int) -> Tensor:
            return (torch.rand(shape, generator=generator) * 2 - 1).div_(math.sqrt(fan)).requires_grad_()

        self.parameters = [
            uniform(hidden, inputs, fan=inputs),
            uniform(hidden, fan=inputs),
            uniform(1, hidden, fan=hidden),
            uniform(1, fan=hidden),
        ]
        self.optimizer = torch.optim.Adam(self.parameters, lr=lr, weight_decay=decay)

    def __call__(self, a: Tensor) -> Tensor:
        """V of each row of ``a`` (B, inputs), shape (B,), in (0, 1)."""
        W1, b1, W2, b2 = self.parameters
        return ((a.to(W1) @ W1.T + b1).relu() @ W2.T + b2).sigmoid().squeeze(1)

    def descend(self, a: Tensor, gradient: Tensor) -> None:
        """One step of Adam, given dL_V/dw for the weights V(a); a broken estimate moves nothing."""
        known = gradient.isfinite()
        if not bool(known.any()):
            return
        a, gradient = a[known], gradient[known]
        self.optimizer.zero_grad()
        with torch.enable_grad():
            self(a).backward(gradient.to(self.parameters[0]))
        self.optimizer.step()

    def state_dict(self) -> State:
        """Parameters and the moments of Adam."""
        state = {f"parameter.{i}": p.detach() for i, p in enumerate(self.parameters)}
        for i, entry in self.optimizer.state_dict()["state"].items():
            state |= {f"adam.{i}.{key}": value for key, value in entry.items()}
        return state

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        with torch.no_grad():
            for i, p in enumerate(self.parameters):
                p.copy_(state[f"parameter.{i}"])
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            if name.startswith("adam."):
                _, number, key = name.split(".")
                moments.setdefault(int(number), {})[key] = value.clone()
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})


class WeightNetWeighting(PredictionWeighting):
    """w_j = V(a_j; Φ) for a description a_j of the member, with Φ taught by dL_V/dw after one virtual step.

    The table keeps V at a member's last visit, for weighted batch norm before the next; at the end of training V weighs
    the whole pool anew.

    Args:
        how: the virtual step and its validation loss.
        hidden: width of V.
        meta_lr: learning rate of V.
        decay: L2 penalty of V.
    """

    def __init__(self, how: HypergradientRequest, hidden: int, meta_lr: float, decay: float) -> None:
        self.how, self.hidden, self.meta_lr, self.decay = how, hidden, meta_lr, decay
        self.table = torch.ones(0)

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
        """A new network; every weight is 1 until a member is visited."""
        self.net = WeightNet(self.inputs(pool.num_classes), self.hidden, self.meta_lr, self.decay, pool.seed)
        self.table = torch.ones(pool.size)

    def request(self, step: int) -> HypergradientRequest:
        """In every step."""
        return self.how

    def batch(self, index: Tensor) -> BatchWeights:
        """V at the last visit."""
        return BatchWeights(self.table[index])

    def observe(self, index: Tensor, losses: Tensor, probabilities: Tensor) -> None:
        """Weigh the batch."""
        self.table[index] = self.weigh(losses, probabilities).to(self.table)

    def update(self, index: Tensor, signal: Signal) -> None:
        """Teach V, then weigh the batch again."""
        assert signal.hypergradient is not None
        described = self.describe(signal.losses, signal.probabilities)
        self.net.descend(described, self.through(index, signal.hypergradient))
        self.observe(index, signal.losses, signal.probabilities)

    @torch.no_grad()
    def weigh(self, losses: Tensor, probabilities: Tensor) -> Tensor:
        """V of any members."""
        return self.net(self.describe(losses, probabilities))

    def state_dict(self) -> State:
        """V, its optimizer and the table."""
        return {"table": self.table, **self.net.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``; ``setup`` comes first."""
        self.table = state["table"].clone()
        self.net.load_state_dict(state)
