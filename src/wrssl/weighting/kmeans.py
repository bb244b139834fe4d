"""k-means over the embeddings of a pool, which are read in parts.

The centers come from a random sample of at most 20,000 rows. Each row then belongs to

    k(x) = argmin_k ‖x − c_k‖² = argmin_k (‖c_k‖²/2 − xᵀc_k),

one chunk after the other. In memory are the sample, one chunk with its distances, and the result: one byte per row up
to 256 clusters, two up to 32,768. Weightings have no option for the size of a chunk. Another one could change the last
bit of a distance, so that a row with two equally near centers goes to the other one, and nothing else.

With fewer distinct rows than clusters (copies in the pool) some clusters stay empty, which does no harm: their weight
is never used.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from wrssl import progress
from wrssl.api import DataError, Rows

FIT_ROWS = 20_000  # centers do not get better from more rows, only later
CHUNK = 4_000  # rows that are read at once
CELLS = 1 << 25  # distances that are in memory at once


def sample_rows(size: int, count: int, generator: torch.Generator) -> Tensor:
    """``count`` different row numbers below ``size`` (all of them if there are fewer), in random order, int64."""
    # The shuffle of int32 is that of int64 and half as large.
    kind = torch.int32 if size <= torch.iinfo(torch.int32).max else torch.int64
    return torch.randperm(size, generator=generator, dtype=kind)[:count].long()


def smallest_type(clusters: int) -> torch.dtype:
    """The smallest type that holds the numbers 0 … clusters − 1."""
    fits = (kind for kind in (torch.uint8, torch.int16) if clusters - 1 <= torch.iinfo(kind).max)
    return next(fits, torch.int32)


def nearest(rows: Tensor, centers: Tensor, cells: int = CELLS) -> Tensor:
    """argmin_k ‖x − c_k‖² for every row, in the smallest type that holds it; ``cells`` distances at once."""
    half_square = centers.square().sum(1) / 2
    parts = rows.split(max(1, cells // len(centers)))
    return torch.cat([(half_square - part @ centers.T).argmin(1).to(smallest_type(len(centers))) for part in parts])


def kmeans(rows: Rows, clusters: int, seed: int, *, fit_rows: int = FIT_ROWS, chunk: int = CHUNK) -> Tensor:
    """The cluster of every row, shape ``(n,)``, in the smallest type that holds it; the same for every ``chunk``.

    Args:
        rows: what is clustered.
        clusters: K; with fewer rows in the sample, as many as there are.
        seed: of the sample and of the first centers.
        fit_rows: size of the sample; a table that is not larger is read at once.
        chunk: rows of a larger one that are read at once.
    """
    size = len(rows)
    with progress.note("finding the clusters of the pool"):
        generator = torch.Generator().manual_seed(seed)
        part = _finite(rows[:] if size <= fit_rows else rows[sample_rows(size, fit_rows, generator)])
        center = part.mean(0)  # the expansion of ‖x − c‖² loses digits far from the origin
        part = part - center
        centers = _fit(part, min(clusters, len(part)), seed)
    if len(part) == size:
        return nearest(part, centers)
    del part  # the sample is not needed any more, and it may be wide
    found = torch.empty(size, dtype=smallest_type(len(centers)))
    for piece in progress.slices(size, chunk, "assigning the pool to clusters"):
        found[piece] = nearest(_finite(rows[piece]) - center, centers)
    return found


def _fit(rows: Tensor, clusters: int, seed: int) -> Tensor:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    fitted = KMeans(clusters, n_init=3, random_state=seed % 2**32)
    # One thread: the order of a parallel sum, and with it the last bit, would vary from run to run.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        fitted.fit(rows.numpy())
    return torch.as_tensor(fitted.cluster_centers_, dtype=rows.dtype)


def _finite(rows: Tensor) -> Tensor:
    if not bool(torch.isfinite(rows).all()):
        raise DataError("The embedding contains NaN or infinite values; remove them before clustering.")
    return rows
