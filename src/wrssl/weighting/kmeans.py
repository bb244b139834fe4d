"""k-means over the embeddings of a pool."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

FIT_ROWS = 20_000  # centres do not get better from more rows, only later
CHUNK = 65_536


def nearest(rows: Tensor, centres: Tensor) -> Tensor:
    """argmin_k ‖x − c_k‖² for every row, in chunks of bounded memory."""
    half_square = centres.square().sum(1) / 2
    parts = [(half_square - chunk @ centres.T).argmin(1) for chunk in rows.split(CHUNK)]
    return torch.cat(parts).to(torch.int32)


def kmeans(rows: Tensor, clusters: int, seed: int) -> Tensor:
    """The cluster of every row, int32: centres from a random part of at most ``FIT_ROWS`` rows, then the nearest."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    generator = torch.Generator().manual_seed(seed)
    part = rows[torch.randperm(len(rows), generator=generator)[:FIT_ROWS]] if len(rows) > FIT_ROWS else rows
    centre = part.mean(0)  # the expansion of ‖x − c‖² loses digits far from the origin
    fitted = KMeans(min(clusters, len(part)), n_init=3, random_state=seed % 2**32)
    # One thread: the order of a parallel sum, and with it the last bit, would vary from run to run.
    with threadpool_limits(1), warnings.catch_warnings():
        # Fewer distinct rows than clusters (copies in the pool) leave some clusters empty, which harms nobody.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit((part - centre).numpy())
    return nearest(rows - centre, torch.as_tensor(fitted.cluster_centers_, dtype=rows.dtype))
