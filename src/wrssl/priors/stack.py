"""How much each kind of score is worth: a stack of log-odds, chosen by the cross-validated log-loss.

With the out-of-fold scores S (one column per kind, each brought to variance 1 over the pool) and n references,

    min_{v ≥ 0, b}   n · [mean_known log(1 + e^{−z}) + mean_pool log(1 + e^{z})] + κ Σ_k (v_k − 1/K)²,   z = S v + b.

With few references the log-loss cannot tell the kinds apart and the stack stays near their mean; with thousands it
decides. A kind that sees nothing gets no weight, and one that is wrong never a negative one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PULL = 10.0  # κ, in units of one reference


def log_loss(z_known: NDArray[np.float64], z_pool: NDArray[np.float64]) -> float:
    """½ [mean log(1 + e^{−z}) over the reference + mean log(1 + e^{z}) over the pool]; log 2 where z tells nothing."""
    return 0.5 * float(np.logaddexp(0, -z_known).mean() + np.logaddexp(0, z_pool).mean())


def stack(known: NDArray[np.float64], pool: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """V and b for scores of shape (n, K) and (m, K) that have variance 1 over the pool."""
    from scipy.optimize import minimize

    n, kinds = known.shape

    def value(u: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        v, b = u[:-1], u[-1]
        z_known, z_pool = known @ v + b, pool @ v + b
        # Derivatives of the two losses by z: −σ(−z)/n and σ(z)/m.
        by_known, by_pool = -_sigmoid(-z_known) / n, _sigmoid(z_pool) / len(pool)
        slope = np.r_[known.T @ by_known + pool.T @ by_pool, by_known.sum() + by_pool.sum()] * n
        slope[:-1] += 2 * PULL * (v - 1 / kinds)
        return 2 * n * log_loss(z_known, z_pool) + PULL * float(np.square(v - 1 / kinds).sum()), slope

    start = np.r_[np.full(kinds, 1 / kinds), 0.0]
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * kinds + [(None, None)])
    return found.x[:-1], float(found.x[-1])


def _sigmoid(z: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import expit

    s: NDArray[np.float64] = expit(z)
    return s
