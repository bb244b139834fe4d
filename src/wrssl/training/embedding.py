"""Embeddings of the pool for weightings: raw values, principal components, or the network's own features.

They are computed while they are read, part by part: a pool on disk stays there, and no embedding is ever in memory as a
whole.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from wrssl import progress
from wrssl.api import OptionError, Pass
from wrssl.data import CHUNK, Projection, prepare, raw_rows
from wrssl.training.passes import PolicyNet
from wrssl.weighting import sample_rows

FIT_ROWS = 20_000


class EmbeddedRows:
    """``f(x_j)`` for the members j that are asked for, computed then and in chunks.

    Args:
        pool: the values as they are stored, possibly memory-mapped.
        f: from stored values to rows.
    """

    def __init__(self, pool: Tensor, f: Callable[[Tensor], Tensor]) -> None:
        self.pool, self.f = pool, f

    def __len__(self) -> int:
        return len(self.pool)

    def __getitem__(self, rows: slice | Tensor, /) -> Tensor:
        if isinstance(rows, Tensor):  # gathered chunk by chunk, since gathering copies
            return torch.cat([self.f(self.pool[part]) for part in rows.split(CHUNK)])
        return torch.cat([self.f(part) for part in self.pool[rows].split(CHUNK)])


def principal_components(
    pool: Tensor, generator: torch.Generator, rows: Callable[[Tensor], Tensor] = raw_rows
) -> Projection:
    """Those of at most 20,000 random members, of what ``rows`` makes of stored values."""
    return Projection.of(pool, sample_rows(len(pool), FIT_ROWS, generator).sort().values, rows)


class PoolEmbedding:
    """``embed(kind)`` for a weighting: hides the values of pool and labeled examples, the network and the device.

    Args:
        pool: the values of the pool as they are stored.
        known: those of the labeled examples.
        net: the network whose features may be asked for.
        device: where it lives.
        generator: of the sample that principal components are found in.
        rows: from stored values to what ``"raw"`` means: the values themselves, or ``Directions`` of an embedding.
    """

    def __init__(
        self,
        pool: Tensor,
        known: Tensor,
        net: PolicyNet,
        device: torch.device,
        generator: torch.Generator,
        rows: Callable[[Tensor], Tensor] = raw_rows,
    ) -> None:
        self.rows = rows
        self.values, self.known_values, self.net, self.device, self.generator = pool, known, net, device, generator
        self._components: Projection | None = None

    def __call__(self, kind: str) -> EmbeddedRows:
        """M float32 rows; those of ``"features"`` belong to the network as it is when they are read."""
        return EmbeddedRows(self.values, self._embedding(kind))

    def known(self, kind: str) -> EmbeddedRows:
        """The same for the labeled examples."""
        return EmbeddedRows(self.known_values, self._embedding(kind))

    def transform(self, kind: str) -> Callable[[Tensor], Tensor] | None:
        """From stored values to rows of that kind; None for ``"features"``, which change in training."""
        return None if kind == "features" else self._embedding(kind)

    def _embedding(self, kind: str) -> Callable[[Tensor], Tensor]:
        if kind == "raw":
            return self.rows
        if kind == "pca":
            if self._components is None:
                with progress.note("finding the principal components of the pool"):
                    self._components = principal_components(self.values, self.generator, self.rows)
            return self._components
        if kind == "features":
            return self._features
        raise OptionError(f"There is no embedding {kind!r}; choose raw, pca or features.")

    @torch.no_grad()
    def _features(self, x: Tensor) -> Tensor:
        """The input of the last layer, with the running statistics."""
        self.net.parts.eval()
        try:
            return self.net.features(prepare(x).to(self.device), Pass.EVALUATION).float().cpu()
        finally:
            self.net.parts.train()
