"""A small network that turns what is known about a member into a weight: 1 hidden layer of ReLUs, a sigmoid at the end.

    V(a) = σ(W₂ relu(W₁ a + b₁) + b₂)

Its parameters descend the validation loss through the weights: dL_V/dΦ = Σ_j (dL_V/dw_j) dV(a_j)/dΦ, by Adam.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wrssl.api import State


class JudgeNet:
    """V and its optimiser.

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
