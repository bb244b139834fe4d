"""The only place where weights meet losses."""

from __future__ import annotations

from torch import Tensor

from wrssl.api import DataError


def weighted_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """(1/B) Σ_j w_j r_j: the mean over the batch, so that small weights shrink the term.

    Shapes are checked, because (B,)·(B, 1) broadcasts to (B, B) and its mean is mean(r)·mean(w): every example would
    get the same weight, and nothing would tell.
    """
    if losses.dim() != 1 or weights.shape != losses.shape:
        raise DataError(
            f"Losses and weights must both have shape (B,), but they have {tuple(losses.shape)} and "
            f"{tuple(weights.shape)}; flatten them before they are combined."
        )
    return (weights * losses).mean()
