"""What many noisy hypergradients say together about groups of members.

One update says almost nothing: g_j is as likely to have the wrong sign as the right one (docs/concepts/default.md).
So each update u counts as one observation per group,

    d_g = (mean_{j in g} g_j − mean over the batch, weighted by what counts) / RMS of g in the batch,

relative to the batch, since the amount of regularisation is the coefficient's affair and not that of the weights. With
sums that forget the past at a rate γ,

    S_g = Σ_u γ^{age} d_g,     V_g = Σ_u γ^{2·age} d_g²,     t_g = S_g / √V_g,

where a group ages only in updates in which it is present. For signals without a direction t is about standard normal,
whatever their scale. Only what exceeds ``SURE`` moves the weights:

    c_g = −GAIN · sign(t_g) · max(0, |t_g| − SURE).
"""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.api import State

MEMORY = 0.99  # γ per update: about the last hundred
SURE = 2.5
GAIN = 0.5


class Evidence:
    """c for a number of groups."""

    def __init__(self, groups: int) -> None:
        self.sums = torch.zeros(2, groups)  # S and V
        self.shift = torch.zeros(groups)  # c

    def collect(self, group: Tensor, gradient: Tensor, counts: Tensor) -> None:
        """One update: the group of each member of the batch, its hypergradient, and what it counts."""
        gradient = torch.nan_to_num(gradient.float(), 0.0, 0.0, 0.0)
        scale = gradient.square().mean().sqrt()
        if not scale > 0:
            return
        centre = (counts * gradient).sum() / counts.sum().clamp_min(1e-6)
        number = self.sums.shape[1]
        total = torch.zeros(number).index_add_(0, group, (gradient - centre) / scale)
        size = torch.bincount(group, minlength=number)
        seen = size > 0
        d = total[seen] / size[seen]
        self.sums[0, seen] = MEMORY * self.sums[0, seen] + d
        self.sums[1, seen] = MEMORY**2 * self.sums[1, seen] + d.square()
        t = self.t()
        self.shift = -GAIN * t.sign() * (t.abs() - SURE).clamp_min(0)

    def t(self) -> Tensor:
        """t_g; 0 before the first observation."""
        return self.sums[0] / self.sums[1].sqrt().clamp_min(1e-12)

    def state_dict(self) -> State:
        """Sums and shifts."""
        return {"evidence": self.sums, "shift": self.shift}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.sums, self.shift = state["evidence"].clone(), state["shift"].clone()
