"""From a gradient per example to a gradient per cluster."""

from __future__ import annotations

from torch import Tensor


def segment_sum(g: Tensor, cluster: Tensor, size: int) -> Tensor:
    """``g_k = Σ_{j in cluster k} g_j``: the chain rule for ``w_j = w_{cluster(j)}``, exactly.

    Args:
        g: a value per example, ``(B,)``.
        cluster: the cluster of each example, ``(B,)``, from 0 to size − 1.
        size: K.

    Returns:
        Shape ``(K,)``; 0 where a cluster has no example here.
    """
    return g.new_zeros(size).index_add_(0, cluster, g)


def segment_mean(g: Tensor, cluster: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The mean over the members seen, so that the size of a step does not depend on the number of clusters.

    Returns:
        The means, ``(K,)``, 0 where a cluster has no example here; and the number of examples seen, ``(K,)``.
    """
    counts = segment_sum(g.new_ones(g.shape), cluster, size)
    return segment_sum(g, cluster, size) / counts.clamp_min(1.0), counts
