"""MixMatch (Berthelot et al., 2019: "MixMatch: A Holistic Approach to Semi-Supervised Learning")."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.api import Context, Method, Net, OptionError, Pass, Views
from wrssl.hypergrad import LOSSES
from wrssl.methods.augmentations import weak, with_noise
from wrssl.methods.mixed_rows import Mixed, beta, blend
from wrssl.registry import register_method

MIX_WITHIN, ROW_WEIGHTS = ("all", "pool"), ("product", "linear")


@register_method("mixmatch")
class MixMatch(Method):
    """Mixtures of examples get the mixture of their labels, where the pool's labels are guessed.

        q_j = sharpen((1/K) Σ_k p(view k of x_j)),   sharpen(p)_c = p_c^{1/T} / Σ_d p_d^{1/T}
        W   = labeled rows with their labels, then the K views of the pool with q;   R = B_l + K B_u rows
        x'  = λ' x + (1 − λ') x_partner,  q' likewise;   λ ~ Beta(α, α) of each row,  λ' = max(λ, 1 − λ)
        L   = (1/B_l) Σ_{labeled rows} w_i CE(q'_i, p_i) + λ_U ramp (1/(K B_u)) Σ_{pool rows} (w_j/C) ‖q'_j − p_j‖²

    A row has weight w · w_partner, with 1 for a labeled source: an example with weight 0 contributes nothing, and
    labeled rows with such a partner are left out too. The linear rule λ' w + (1 − λ') w_partner is an option; it keeps
    more rows, and with them the foreign parts that they contain. The training step computes λ_U · mean over R rows of
    (w r), hence

        labeled rows: r = R/(B_l λ_U) · CE,    pool rows: r = ramp · R/(K B_u) · (1/C) ‖·‖²

    Guesses are constants. One pass carries the gradient, over all R rows.

    Args:
        K: views of each member of the pool.
        T: the temperature of sharpening; below 1 sharpens.
        alpha: α; small values mix little.
        mix_within: ``"all"`` draws partners from all rows, ``"pool"`` never mixes labeled with unlabeled ones.
        row_weights: ``"product"`` or ``"linear"``.
        ramp: the share of the run in which λ_U rises from 0, linearly. The original takes 16,000 of a million steps,
            in which the guesses become good; a run of a few thousand steps has to spend a larger part on that.
        coef: λ_U; not 0, because the labeled rows are part of the same mean.
        lr: for Adam; the original takes 0.002 in its long runs.
    """

    summary: ClassVar[str] = "mixtures of examples have mixtures of labels and guesses"
    compares_views: ClassVar[bool] = True
    mixes_labeled: ClassVar[bool] = True

    def __init__(
        self,
        K: int = 2,
        T: float = 0.5,
        alpha: float = 0.75,
        mix_within: str = "all",
        row_weights: str = "product",
        ramp: float = 0.4,
        coef: float = 75.0,
        lr: float = 3e-3,
    ) -> None:
        if mix_within not in MIX_WITHIN:
            raise OptionError(f"mixmatch knows mix_within={' and '.join(MIX_WITHIN)}, not {mix_within!r}.")
        if row_weights not in ROW_WEIGHTS:
            raise OptionError(f"mixmatch knows row_weights={' and '.join(ROW_WEIGHTS)}, not {row_weights!r}.")
        if K < 1 or not 0 <= ramp <= 1:
            raise OptionError(f"mixmatch needs K of at least 1 and a ramp between 0 and 1, not K={K} and ramp={ramp}.")
        for name, value in {"T": T, "alpha": alpha, "coef": coef}.items():
            if not 0 < value < float("inf"):
                raise OptionError(f"The option {name} of mixmatch must be a number above 0, but it is {value}.")
        self.K, self.T, self.alpha, self.mix_within, self.ramp = K, T, alpha, mix_within, ramp
        self.row_weights, self.coef, self.lr = row_weights, coef, lr

    @torch.no_grad()
    def guess(self, net: Net, views: list[Tensor]) -> Tensor:
        """q, shape (B, C). Only the pass over the first view updates the running statistics."""
        kinds = [Pass.UNLABELED, *[Pass.PERTURBED] * (self.K - 1)]
        p = [net.logits(view, kind).softmax(1) for view, kind in zip(views, kinds, strict=True)]
        return (torch.stack(p).mean(0).log() / self.T).softmax(1)

    def partners(self, labeled: int, rows: int, generator: torch.Generator) -> Tensor:
        """The row that each row is mixed with: a permutation of all, or one of each kind."""
        sizes = [rows] if self.mix_within == "all" else [labeled, rows - labeled]
        orders = [torch.randperm(size, generator=generator, device=generator.device) for size in sizes]
        orders[-1] += rows - sizes[-1]
        return torch.cat(orders)

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """The views that make the guesses, then the mixed rows, labeled ones first."""
        assert context.labeled is not None, "the step gives the labeled batch"
        known, y = context.labeled
        known = with_noise(known, context)  # the loop has augmented it, for every method alike
        views = [weak(x, context) for _ in range(self.K)]
        q, n, R = self.guess(net, views), len(known), len(known) + self.K * len(x)
        rows, labels = torch.cat([known, *views]), torch.cat([F.one_hot(y, q.shape[1]).to(q), q.repeat(self.K, 1)])
        source = torch.cat([y.new_full((n,), -1), torch.arange(len(x), device=x.device).repeat(self.K)])

        share = beta(self.alpha, R, context.augment).to(x)
        share, partner = share.maximum(1 - share), self.partners(n, R, context.augment).to(x.device)
        mixed = Mixed(source, source[partner], share, self.row_weights)
        inputs, scales = blend(rows, partner, share), q.new_zeros(R, 2)
        scales[:n, 0], scales[n:, 1] = R / (n * self.coef), self.strength(context) * R / (R - n)
        targets = torch.cat([blend(labels, partner, share), scales], 1)
        return Views(inputs, Pass.PERTURBED, net.features(inputs, Pass.PERTURBED, mixed), targets, mixed)

    def strength(self, context: Context) -> float:
        """The ramp: min(1, step/(ramp · steps))."""
        return min(1.0, context.step / (self.ramp * context.steps)) if self.ramp else 1.0

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r_i = a_i CE(q'_i, p_i) + b_i (1/C) ‖q'_i − p_i‖², where row i of the targets is [q'_i, a_i, b_i]."""
        q, a, b = targets[:, :-2], targets[:, -2], targets[:, -1]
        return a * LOSSES["ce"].value(logits, q) + b * LOSSES["mse"].value(logits, q)
