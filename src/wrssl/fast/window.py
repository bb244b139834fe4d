"""A convolution whose kernel covers the whole image: one matrix product, and no search for the best algorithm."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from wrssl.fast.conditions import possible


class WindowConv(nn.Module):
    """The layer as a product where its kernel covers the input; it owns no parameter."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self._layer = (conv,)  # not registered: it has its name elsewhere, and one name is enough

    def forward(self, x: Tensor) -> Tensor:
        """(N, C_out, 1, 1) where the kernel covers ``x``, else what the layer gives."""
        (conv,) = self._layer
        if x.dim() != 4 or tuple(x.shape[-2:]) != conv.kernel_size or not possible(x, conv.weight):
            output: Tensor = conv(x)
            return output
        # The blocks give (C, H, W, N) in memory: this order of flattening is a view of it.
        columns = x.permute(1, 2, 3, 0).reshape(-1, len(x)).t()
        return F.linear(columns, conv.weight.flatten(1), conv.bias).view(len(x), -1, 1, 1)
