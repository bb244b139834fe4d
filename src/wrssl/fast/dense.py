"""A layer that sees its whole input: a Linear layer, or a convolution whose kernel covers the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from wrssl.fast.buffers import Lease


@dataclass(frozen=True)
class Dense:
    """The sizes of one such layer; the same maps as in ``geometry.Geometry``, all of them trivial.

    Args:
        inputs: numbers per example.
        out_channels: numbers per example in the result.
        shape: of one example, (F,) or (C, H, W).
        result: of one example in the result, (C_out,) or (C_out, 1, 1).
    """

    inputs: int
    out_channels: int
    shape: tuple[int, ...]
    result: tuple[int, ...]
    planes: ClassVar[int] = 1

    @property
    def fits(self) -> bool:
        """Always."""
        return True

    def gather(self, x: Tensor, lease: Lease) -> tuple[Tensor, Tensor]:
        """The examples as columns with a one below each, (inputs + 1, N), and the columns alone."""
        columns = x.flatten(1).t() if x.dim() == 2 else x.permute(1, 2, 3, 0).reshape(self.inputs, len(x))
        result = lease.take(x, self.inputs + 1, len(x))
        result[:-1].copy_(columns)
        result[-1].fill_(1)
        return result, result[:-1]

    def average(self, columns: Tensor) -> Tensor:
        """The mean of each row over positions: there is one."""
        return columns

    def scatter(self, a: Tensor, n: int) -> Tensor:
        """Columns back to examples."""
        return a.t() if len(self.shape) == 1 else a.view(*self.shape, n).permute(3, 0, 1, 2)

    def expand(self, weight: Tensor) -> Tensor:
        """The kernel as rows, with a column of zeros."""
        return torch.nn.functional.pad(weight.flatten(1), (0, 1))

    def fold(self, wide: Tensor, weight: Tensor) -> Tensor:
        """The gradient of the kernel from that of its rows."""
        return wide[:, : self.inputs].reshape(weight.shape)
