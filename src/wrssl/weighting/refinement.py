"""Where the validation loss may overrule the prior: evidence is shared in groups, and moves log-odds.

**Groups** are the K clusters of a k-means over the pool, each divided into three by the prior π (foreign, unclear,
own), so that one half of a cluster can be found useful and the other not. With σ the logistic function, c_g the
evidence about a group and ε = 0.02,

    w_j = [σ(logit(ε + (1 − 2ε) π_j) + c_g(j)) − ε] / (1 − 2ε), cut to [0, 1]:

the prior itself where there is no evidence, and any other weight if there is enough of it.

**Evidence.** One hypergradient says almost nothing: g_j is as likely to have the wrong sign as the right one
(docs/concepts/default.md). So each update u counts as one observation per group,

    d_g = (mean_{j in g} g_j − center) / RMS of g in the batch − H/2,     center = Σ_j π_j g_j / Σ_j π_j.

Gradients are centered on the prior: on what members help on average that the prior takes for own. How much
regularization is good is a matter of the coefficient and not of the weights. Centering on π and not on the current
weights avoids a feedback that eliminates groups one by one. To help less than others is not to hurt: where own members
surely help, H is how much they do, and the line is drawn at half of it. With sums that forget the past at a rate γ,

    S_g = Σ_u γ^{age} d_g,     V_g = Σ_u γ^{2·age} d_g²,     t_g = S_g / √V_g,

where a group ages only in updates in which it is present. For signals without a direction t is about standard normal,
whatever their scale. The center has sums of its own, and H = −S/Σγ^{age} of it where t < −SURE, else 0.

If the mean of a group's signals may be anything, the odds that it is above 0 are Φ(t) : Φ(−t), with Φ the distribution
function of the normal. With many groups, looked at again and again, some are far out by chance, so only what goes
beyond ``SURE`` moves the weights, and nothing moves them further than ``MOST``:

    c_g = −sign(t_g) · min(MOST, max(0, ℓ(|t_g|) − ℓ(SURE))),     ℓ(t) = log Φ(t) − log Φ(−t).

t = 3.5 moves log-odds by 1.8, t = 4 by 3.8: persistent evidence overrules any prior.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.api import DataError, HypergradientRequest, OptionError, Rows, State
from wrssl.weighting.kmeans import kmeans

LEVELS = 3
SOFT = 0.02  # ε: a prior of 0 or 1 can be overruled as if it were this far from it
MEMORY = 0.99  # γ per update: about the last hundred
SURE = 3.0
MOST = 8.0


def log_odds(t: Tensor) -> Tensor:
    """``ℓ(t) = log Φ(t) − log Φ(−t)``."""
    odds: Tensor = torch.special.log_ndtr(t) - torch.special.log_ndtr(-t)
    return odds


class Evidence:
    """c for a number of groups."""

    def __init__(self, groups: int) -> None:
        self.sums = torch.zeros(3, groups + 1)  # S, V and Σγ^age; the last column is the center's
        self.shift = torch.zeros(groups)  # c

    def collect(self, group: Tensor, gradient: Tensor, own: Tensor) -> None:
        """One update: the group of each member of the batch, its hypergradient, its part in the center."""
        gradient = torch.nan_to_num(gradient.float(), 0.0, 0.0, 0.0)
        scale = gradient.square().mean().sqrt()
        if not scale > 0:
            return
        gradient = gradient / scale
        center = (own * gradient).sum() / own.sum().clamp_min(1e-6)
        number = len(self.shift)
        total = torch.zeros(number + 1).index_add_(0, group, gradient - center - self.line())
        size = torch.bincount(group, minlength=number + 1)
        total[-1], size[-1] = center, 1
        seen = size > 0
        d = total[seen] / size[seen]
        past = self.sums[:, seen] * torch.tensor([[MEMORY], [MEMORY**2], [MEMORY]])
        self.sums[:, seen] = past + torch.stack([d, d.square(), torch.ones_like(d)])
        t = self.t()
        self.shift = -t.sign() * (log_odds(t.abs()) - log_odds(t.new_tensor(SURE))).clamp(0, MOST)

    def t(self) -> Tensor:
        """t_g; 0 before the first observation."""
        return self._t()[:-1]

    def line(self) -> Tensor:
        """``H/2``."""
        helps = -self.sums[0, -1] / self.sums[2, -1].clamp_min(1)
        return torch.where(self._t()[-1] < -SURE, helps / 2, torch.zeros_like(helps))

    def _t(self) -> Tensor:
        return self.sums[0] / self.sums[1].sqrt().clamp_min(1e-12)

    def state_dict(self) -> State:
        """Sums and shifts."""
        return {"evidence": self.sums, "shift": self.shift}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        if state["evidence"].shape != (len(self.sums), len(state["shift"]) + 1):
            raise DataError("This state was stored by another version of wrssl; start the run anew in another folder.")
        self.sums, self.shift = state["evidence"].clone(), state["shift"].clone()


class Refinement:
    """Clusters, evidence, and the weights that follow from them.

    Args:
        clusters: K.
        every: L, the steps between two hypergradients.
        how: how they are estimated.
    """

    def __init__(self, clusters: int, every: int, how: HypergradientRequest) -> None:
        if clusters < 1 or every < 1:
            raise OptionError(f"K counts clusters and L steps; both must be at least 1 (K={clusters}, L={every}).")
        self.K, self.every, self.how = clusters, every, how
        self.evidence = Evidence(clusters * LEVELS)
        self.cluster_of = torch.zeros(0, dtype=torch.uint8)

    def cluster(self, rows: Rows, seed: int) -> None:
        """Find the clusters; nothing is known about them yet."""
        self.evidence = Evidence(self.K * LEVELS)
        self.cluster_of = kmeans(rows, min(self.K, len(rows)), seed)

    def request(self, step: int) -> HypergradientRequest | None:
        """In every L-th step."""
        return self.how if step % self.every == 0 else None

    def groups(self, index: Tensor, prior: Tensor) -> Tensor:
        """The group of each of these members."""
        level = (prior * LEVELS).long().clamp_(max=LEVELS - 1)
        return self.cluster_of[index].long() * LEVELS + level

    def refined(self, index: Tensor, prior: Tensor, shift: Tensor) -> Tensor:
        """The weights of these members with the evidence ``shift``."""
        odds = torch.logit(SOFT + (1 - 2 * SOFT) * prior) + shift[self.groups(index, prior)]
        return ((odds.sigmoid() - SOFT) / (1 - 2 * SOFT)).clamp(0, 1)

    def state_dict(self) -> State:
        """Clusters and evidence."""
        return {"cluster_of": self.cluster_of, **self.evidence.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.cluster_of = state["cluster_of"].clone()
        self.evidence.load_state_dict(state)
