"""What stored rows become: the inputs of a network, or rows that can be compared (raw values, principal components)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

COMPONENTS = 50
MANY = 1024  # values per example from which a full decomposition of their covariance takes longer than all the rest
SIDE = 32  # larger images are averaged down first: finer detail does not help k-means, and the covariance stays small
CHUNK = 2_000  # examples that go through an embedding at once


def prepare(batch: Tensor) -> Tensor:
    """Turn a stored batch into the input of a network; nothing else does that.

    ``uint8`` values become x / 127.5 − 1, so that [0, 255] maps to [−1, 1]; floats are taken as they are, those of
    half precision as float32.

    Args:
        batch: rows of a scenario, any shape.

    Returns:
        A float tensor of the same shape; a float batch is returned itself, not a copy.
    """
    if batch.dtype == torch.uint8:
        return batch.to(torch.float32).div_(127.5).sub_(1.0)
    return batch.float() if batch.dtype == torch.float16 else batch


def raw_rows(x: Tensor) -> Tensor:
    """The values of each example as one row, images averaged down to at most 32 × 32."""
    x = prepare(x)
    if x.dim() == 4 and max(x.shape[2:]) > SIDE:
        x = F.adaptive_avg_pool2d(x, (min(SIDE, x.shape[2]), min(SIDE, x.shape[3])))
    return x.flatten(1)


def unit_rows(x: Tensor, center: Tensor) -> Tensor:
    """(x − c) / ‖x − c‖ for each row: its direction from the middle of the pool; 0 where it lies there."""
    moved = x - center
    length: Tensor = torch.linalg.vector_norm(moved, dim=1, keepdim=True)
    return moved / length.clamp_min(1e-12)


@dataclass(frozen=True)
class Directions:
    """Rows of an embedding as directions from a center, see ``unit_rows``.

    Attributes:
        center: c, the mean of the pool.
    """

    center: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """The directions of these examples."""
        return unit_rows(raw_rows(x), self.center)

    def state_dict(self) -> dict[str, Tensor]:
        """As tensors that ``transform_from_state`` takes."""
        return {"center": self.center}


Transform: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Projection:
    """(f(x) − m)ᵀV.

    Attributes:
        mean: m.
        directions: V, one column per component.
        first: f, ``raw_rows`` or ``Directions``.
    """

    mean: Tensor
    directions: Tensor
    first: Transform = raw_rows

    def __call__(self, x: Tensor) -> Tensor:
        """The components of these examples."""
        return (self.first(x) - self.mean) @ self.directions

    def state_dict(self) -> dict[str, Tensor]:
        """As tensors that ``from_state`` takes."""
        # Transposed, as V lies in memory: in another order the products would be rounded differently.
        own = {"mean": self.mean, "directions": self.directions.T.contiguous()}
        return own | (self.first.state_dict() if isinstance(self.first, Directions) else {})

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> Projection:
        """Inverse of ``state_dict``; other entries of ``state`` are ignored."""
        first = Directions(state["center"]) if "center" in state else raw_rows
        return cls(state["mean"], state["directions"].T, first)

    @classmethod
    def of(cls, pool: Tensor, chosen: Tensor, first: Transform = raw_rows) -> Projection:
        """The mean m and the first 50 eigenvectors V of the covariance of the chosen members of the pool."""
        # Filled and centered in place: with images of 3 × 32 × 32 this matrix takes half a gigabyte.
        part = torch.empty(len(chosen), first(pool[:1]).shape[1], dtype=torch.float64)
        for here, there in zip(part.split(CHUNK), chosen.split(CHUNK), strict=True):
            here.copy_(first(pool[there]))
        mean = part.mean(0)
        part -= mean
        return cls(mean.float(), leading(part.T @ part / len(part)).float(), first)


def transform_from_state(state: Mapping[str, Tensor]) -> Transform:
    """The transform that was stored: a ``Projection``, ``Directions``, or where neither was stored ``raw_rows``."""
    if "mean" in state:
        return Projection.from_state(state)
    return Directions(state["center"]) if "center" in state else raw_rows


def leading(covariance: Tensor) -> Tensor:
    """Its first 50 eigenvectors, largest eigenvalue first.

    Of a large matrix only these are computed, by Lanczos iterations to machine precision: for photographs of
    3 × 32 × 32 that takes a seventh of the time of all 3,072.
    """
    if len(covariance) > MANY:
        from scipy.sparse.linalg import ArpackError, eigsh  # imported only where it is needed, as it takes time

        start = torch.randn(len(covariance), generator=torch.Generator().manual_seed(0), dtype=covariance.dtype)
        try:
            values, found = eigsh(covariance.numpy(), COMPONENTS, v0=start.numpy())
            return torch.from_numpy(found[:, values.argsort()[::-1]].copy())
        except ArpackError:
            pass  # no variance at all, for example; the full decomposition always works
    vectors: Tensor = torch.linalg.eigh(covariance)[1]
    return vectors.flip(1)[:, :COMPONENTS]
