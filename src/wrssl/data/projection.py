"""From stored values to rows that can be compared: raw values, or their principal components."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.data.prepare import prepare

COMPONENTS = 50
MANY = 1024  # values per example from which a full decomposition of their covariance takes longer than all the rest
SIDE = 32  # larger images are averaged down first: finer detail does not help k-means, and the covariance stays small
CHUNK = 2_000  # examples that go through an embedding at once


def raw_rows(x: Tensor) -> Tensor:
    """The values of each example as one row, images averaged down to at most 32 × 32."""
    x = prepare(x)
    if x.dim() == 4 and max(x.shape[2:]) > SIDE:
        x = F.adaptive_avg_pool2d(x, (min(SIDE, x.shape[2]), min(SIDE, x.shape[3])))
    return x.flatten(1)


@dataclass(frozen=True)
class Projection:
    """(x − m)ᵀV.

    Attributes:
        mean: m.
        directions: V, one column per component.
    """

    mean: Tensor
    directions: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """The components of these examples."""
        return (raw_rows(x) - self.mean) @ self.directions

    @classmethod
    def of(cls, pool: Tensor, chosen: Tensor) -> Projection:
        """The mean m and the first 50 eigenvectors V of the covariance of the chosen members."""
        # Filled and centred in place: with images of 3 × 32 × 32 this matrix has half a gigabyte.
        part = torch.empty(len(chosen), raw_rows(pool[:1]).shape[1], dtype=torch.float64)
        for here, there in zip(part.split(CHUNK), chosen.split(CHUNK), strict=True):
            here.copy_(raw_rows(pool[there]))
        mean = part.mean(0)
        part -= mean
        return cls(mean.float(), leading(part.T @ part / len(part)).float())


def leading(covariance: Tensor) -> Tensor:
    """Its first 50 eigenvectors, largest eigenvalue first.

    Of a large matrix only these are computed, by Lanczos iterations to machine precision: for photographs of
    3 × 32 × 32 that takes a seventh of the time of all 3,072.
    """
    if len(covariance) > MANY:
        from scipy.sparse.linalg import ArpackError, eigsh  # an import that small data need not pay

        start = torch.randn(len(covariance), generator=torch.Generator().manual_seed(0), dtype=covariance.dtype)
        try:
            values, found = eigsh(covariance.numpy(), COMPONENTS, v0=start.numpy())
            return torch.from_numpy(found[:, values.argsort()[::-1]].copy())
        except ArpackError:
            pass  # no variance at all, for example: the full decomposition takes anything
    vectors: Tensor = torch.linalg.eigh(covariance)[1]
    return vectors.flip(1)[:, :COMPONENTS]
