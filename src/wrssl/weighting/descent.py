"""The weight step of Algorithm 2: descent, the proximal step of the L1 term, projection on [0, 1].

    w ← clip(w − β g/RMS(g) − β λ, 0, 1)

RMS(g) is an exponential average over the updates. With the mean over the batch, g carries 1/B, and a plain step of 0.1
moves an example by 10⁻⁵ in a whole training; measured in units of RMS(g) a few visits suffice, and neither β nor λ
depends on batch size, coefficient or scale of the loss. Projection (not a sigmoid) lets a weight leave 0 again, because
g_j does not depend on w_j.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.api import State

MEMORY = 0.9  # of the exponential average: about the last ten updates


class WeightDescent:
    """w ← prox(w − step) for a table of weights.

    Args:
        beta: β, the step; in units of RMS(g) unless ``plain``.
        l1: λ of the L1 term, by the proximal map of β λ ‖w‖₁ on w ≥ 0; in units of RMS(g) unless ``plain``. The paper's
            10⁻⁷ is so small that near w = 1 a float32 weight does not notice it; from about 10⁻⁵ on it acts.
        plain: the paper's step w − β g.
    """

    def __init__(self, beta: float, l1: float, plain: bool) -> None:
        self.beta, self.l1, self.plain = beta, l1, plain
        self.mean_square = torch.zeros((), dtype=torch.float64)
        self.updates = torch.zeros((), dtype=torch.int64)

    def step(self, w: Tensor, gradient: Tensor) -> Tensor:
        """The new values of the weights ``w`` with gradient ``gradient``; both hold the entries that were visited."""
        gradient = torch.nan_to_num(gradient, 0.0, 0.0, 0.0)  # a broken estimate says nothing about its weight
        if not self.plain:
            self.updates += 1
            square = gradient.detach().to(torch.float64).square().mean().cpu()
            self.mean_square.lerp_(square, 1 - MEMORY)
            unbiased = self.mean_square / (1 - MEMORY ** self.updates.to(torch.float64))
            # No signal at all (confidences below the threshold) must not become 0/0.
            gradient = gradient / unbiased.sqrt().clamp_min(1e-30).to(gradient.dtype).to(gradient.device)
        return (w - self.beta * gradient - self.beta * self.l1).clamp(0, 1)

    def state_dict(self) -> State:
        """The running average."""
        return {"mean_square": self.mean_square, "updates": self.updates}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.mean_square, self.updates = state["mean_square"].clone(), state["updates"].clone()
