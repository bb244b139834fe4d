"""Rows that are mixtures of two examples (Zhang et al., 2018: "mixup: Beyond Empirical Risk Minimization").

    row_i = share_i · first_i + (1 − share_i) · second_i

Weights follow the rows. With the rule ``"product"`` w_row = w_first · w_second, so an example with weight 0 contributes
nothing, neither as a source nor as a partner. With ``"linear"`` w_row = share · w_first + (1 − share) · w_second, which
leaves an outlier in the rows of its partners. A row whose two sources are augmentations of the same example has the
weight of that example.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.special import betaincinv
from torch import Tensor


def beta(alpha: float, size: int, generator: torch.Generator) -> Tensor:
    """Draws of Beta(α, α), by the inverse of its distribution function: torch's sampler reads the global generator."""
    uniform = torch.rand(size, generator=generator, dtype=torch.float64, device=generator.device)
    return torch.from_numpy(betaincinv(alpha, alpha, uniform.cpu().numpy()))


def blend(rows: Tensor, partner: Tensor, share: Tensor) -> Tensor:
    """share_i · row_i + (1 − share_i) · row_partner(i), for rows of any shape."""
    part = share.to(rows).view(-1, *[1] * (rows.dim() - 1))
    return part * rows + (1 - part) * rows[partner]


@dataclass(frozen=True, eq=False)
class Mixed:
    """Which examples each row was mixed from; implements ``wrssl.api.RowSources``.

    Attributes:
        first: places in the unlabeled batch, −1 for a labeled example, whose weight is 1; shape ``(R,)``.
        second: likewise.
        share: of the first, shape ``(R,)``.
        rule: ``"product"`` or ``"linear"``.
    """

    first: Tensor
    second: Tensor
    share: Tensor
    rule: str = "product"

    def weights(self, w: Tensor) -> Tensor:
        """The weights of the rows, ``(R,)``, from those of the batch."""
        one, other = self._sources(w)
        if self.rule == "linear":
            return torch.lerp(other, one, self.share.to(w))
        return torch.where(self.first == self.second, one, one * other)

    def gradient(self, rows: Tensor, w: Tensor) -> Tensor:
        """Derivatives by the weights ``w`` of the batch, ``(B,)``, from those by the weights of the rows."""
        size, share = len(w), self.share.to(rows)
        first, second = (torch.where(place < 0, size, place) for place in (self.first, self.second))
        if self.rule == "linear":
            parts = share, 1 - share
        else:
            same, (one, other) = first == second, self._sources(w.to(rows))
            parts = torch.where(same, 1.0, other), torch.where(same, 0.0, one)
        total = rows.new_zeros(size + 1)
        return total.index_add(0, first, parts[0] * rows).index_add(0, second, parts[1] * rows)[:size]

    def of_members(self, rows: Tensor, size: int) -> Tensor:
        """For each member of the batch the mean over the rows in which it comes first; ``rows`` is ``(R, …)``."""
        known = self.first >= 0
        place, values = self.first[known], rows[known]
        total = rows.new_zeros(size, *rows.shape[1:]).index_add(0, place, values)
        count = torch.bincount(place, minlength=size).clamp_min(1).to(rows)
        return total / count.view(-1, *[1] * (rows.dim() - 1))

    def _sources(self, w: Tensor) -> tuple[Tensor, Tensor]:
        known = torch.cat([w, w.new_ones(1)])  # −1 is the last place
        return known[self.first], known[self.second]
