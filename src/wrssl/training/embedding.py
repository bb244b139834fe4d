"""Embeddings of the pool, for clustering: raw values, principal components, or the network's own features."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.api import OptionError, Pass
from wrssl.data import prepare
from wrssl.training.passes import PolicyNet

COMPONENTS = 50
FIT_ROWS = 20_000
SIDE = 32  # larger images are averaged down first: finer detail does not help k-means, and the covariance stays small
CHUNK = 2_000


def raw_rows(x: Tensor) -> Tensor:
    """The values of each example as one row, images averaged down to at most 32 × 32."""
    x = prepare(x)
    if x.dim() == 4 and max(x.shape[2:]) > SIDE:
        x = F.adaptive_avg_pool2d(x, (min(SIDE, x.shape[2]), min(SIDE, x.shape[3])))
    return x.flatten(1)


def principal_components(pool: Tensor, generator: torch.Generator) -> Tensor:
    """The first 50 principal components of ``raw_rows``, from the covariance of at most 20,000 random members."""
    chosen = torch.randperm(len(pool), generator=generator)[:FIT_ROWS].sort().values
    part = torch.cat([raw_rows(pool[rows]) for rows in chosen.split(CHUNK)]).double()
    mean = part.mean(0)
    covariance = (part - mean).T @ (part - mean) / len(part)
    directions = torch.linalg.eigh(covariance)[1].flip(1)[:, :COMPONENTS]
    mean, directions = mean.float(), directions.float()
    return torch.cat([(raw_rows(chunk) - mean) @ directions for chunk in pool.split(CHUNK)])


@torch.no_grad()
def network_features(pool: Tensor, net: PolicyNet, device: torch.device) -> Tensor:
    """The input of the last layer for every member, with the running statistics."""
    net.parts.eval()
    try:
        chunks = [net.features(prepare(chunk).to(device), Pass.EVALUATION).cpu() for chunk in pool.split(CHUNK)]
    finally:
        net.parts.train()
    return torch.cat(chunks)


class PoolEmbedding:
    """``embed(kind)`` for a weighting: hides the pool's values, the network and the device."""

    def __init__(self, pool: Tensor, net: PolicyNet, device: torch.device, generator: torch.Generator) -> None:
        self.pool, self.net, self.device, self.generator = pool, net, device, generator

    def __call__(self, kind: str) -> Tensor:
        """An (M, k) float32 tensor."""
        if kind == "raw":
            return torch.cat([raw_rows(chunk) for chunk in self.pool.split(CHUNK)])
        if kind == "pca":
            return principal_components(self.pool, self.generator)
        if kind == "features":
            return network_features(self.pool, self.net, self.device)
        raise OptionError(f"There is no embedding {kind!r}; choose raw, pca or features.")
