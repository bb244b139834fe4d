"""Weighted batch normalization, and the policies that say which statistics a pass uses.

Algorithm 1 of the paper: with one weight w_i per example, per channel and over all positions s of S,

    μ_w  = Σ_i w_i Σ_s x_is / (S Σ_i w_i)
    σ²_w = Σ_i w_i Σ_s (x_is − μ_w)² / (S Σ_i w_i)
    y    = γ (x − μ_w) / √(σ²_w + ε) + β

For w = 1 this is torch's batch norm; for w = 1 on the in-distribution part and 0 elsewhere it is batch norm of that
part alone (Proposition 3), which plain batch norm of the mixed batch is not (Proposition 1).

The paper leaves the running statistics open. Here

    running mean ← (1 − m) running mean + m μ_w
    running var  ← (1 − m) running var  + m σ²_w n/(n − 1),   n = S (Σ w)² / Σ w²

n is the effective number of values: scale-invariant in w, S·N for w = 1 and S·(number of ones) for 0/1 weights, so that
both identities hold for the buffers too; n > 1 keeps the variance non-negative (the naive Σw − 1 does not).
Where the batch has no usable weight (Σw < ``MIN_TOTAL`` or n < 2) the running statistics normalize it and are not
updated.

``moments.py`` has the statistics, ``composed.py`` the normalization from tensor operations, which can be differentiated
in every way, ``native.py`` and ``table.py`` the same on fast kernels, ``layers.py`` the layers and the conversion from
torch's layers to them and back, ``policies.py`` and ``context.py`` what a pass asks of them.
"""

from __future__ import annotations

from wrssl.norm.context import sample_weights, statistics
from wrssl.norm.layers import (
    Weighted,
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
    WeightedSyncBatchNorm,
    convert_batchnorm,
    use_native_kernels,
    weighted_layers,
)
from wrssl.norm.moments import MIN_TOTAL, MIN_VALUES, Counts, Part, count_weights, weighted_moments
from wrssl.norm.policies import POLICIES, PassState, Source, policy_table

__all__ = [
    "MIN_TOTAL",
    "MIN_VALUES",
    "POLICIES",
    "Counts",
    "Part",
    "PassState",
    "Source",
    "Weighted",
    "WeightedBatchNorm1d",
    "WeightedBatchNorm2d",
    "WeightedBatchNorm3d",
    "WeightedSyncBatchNorm",
    "convert_batchnorm",
    "count_weights",
    "policy_table",
    "sample_weights",
    "statistics",
    "use_native_kernels",
    "weighted_layers",
    "weighted_moments",
]
