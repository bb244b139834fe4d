"""A convolution with 2 x 2 pooling after it as one matrix product.

Examples lie innermost: activations are (C, H, W, N) in memory, so that every copy and every elementwise operation runs
over contiguous stretches of at least N numbers, however small the images are.

The four outputs that are pooled together see a window of (kh+1) x (kw+1) inputs. Gathering one window per pooled
position and example gives A, (C·(kh+1)·(kw+1), positions·N); the kernel, written four times with the shifts
(dy, dx) ∈ {0, 1}² into rows of zeros, gives W̃, (4·C_out, C·(kh+1)·(kw+1)); and W̃ A holds the four outputs in four
planes. Both have one entry more per column and row, a one in A and a zero in W̃, which can hold a bias. This multiplies
(1 + 1/kh)(1 + 1/kw) times more than needed, and gathers (kh+1)(kw+1)/4 numbers per output instead of kh·kw; for the few
channels of small networks that is a good bargain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from wrssl.fast.buffers import Lease

# Planes are ordered (dx, dy): comparing the halves decides within a row, then the quarters between rows, and the first
# of equal values wins as in torch's max-pooling.
_SHIFTS = [(dy, dx) for dx in (0, 1) for dy in (0, 1)]


@dataclass(frozen=True)
class Geometry:
    """The sizes of one block: a stride-1 convolution of (C, H, W) with zero padding, then 2 x 2 max-pooling."""

    channels: int
    out_channels: int
    kernel: tuple[int, int]
    padding: tuple[int, int]
    height: int
    width: int

    @cached_property
    def positions(self) -> int:
        """Values per channel and example before pooling."""
        return 4 * self.pooled[0] * self.pooled[1]

    @cached_property
    def padded(self) -> tuple[int, int]:
        """Height and width with the border of zeros."""
        return self.height + 2 * self.padding[0], self.width + 2 * self.padding[1]

    @cached_property
    def window(self) -> tuple[int, int]:
        """What the four outputs of one pooled position see."""
        return self.kernel[0] + 1, self.kernel[1] + 1

    @cached_property
    def pooled(self) -> tuple[int, int]:
        """Height and width of the result."""
        return (self.padded[0] - self.kernel[0] + 1) // 2, (self.padded[1] - self.kernel[1] + 1) // 2

    @cached_property
    def fits(self) -> bool:
        """Whether each output belongs to one pooling window; else the outermost would count in the statistics only."""
        sizes = [p - k + 1 for p, k in zip(self.padded, self.kernel, strict=True)]
        return all(size > 0 and size % 2 == 0 for size in sizes)

    def image(self, x: Tensor, lease: Lease) -> Tensor:
        """``x`` (N, C, H, W) of any strides with its border of zeros, examples innermost: (C, H, W, N)."""
        source = x.permute(1, 2, 3, 0)
        if not any(self.padding):
            return source.contiguous()
        top, left = self.padding
        image = lease.take(x, self.channels, *self.padded, x.shape[0], filled=0)
        image[:, top : top + self.height, left : left + self.width].copy_(source)
        return image

    def crop(self, image: Tensor) -> Tensor:
        """The transpose of ``image``: (C, H, W, N) without the border, as (N, C, H, W)."""
        top, left = self.padding
        return image[:, top : top + self.height, left : left + self.width].permute(3, 0, 1, 2)

    def windows(self, image: Tensor) -> Tensor:
        """A view of the padded images (C, H, W, N): what each pooled position sees, (C, kh+1, kw+1, down, right, N)."""
        (height, width), n = self.padded, image.shape[-1]
        line = width * n
        return image.as_strided(
            (self.channels, *self.window, *self.pooled, n), (height * line, line, n, 2 * line, 2 * n, 1)
        )

    def expand(self, weight: Tensor) -> Tensor:
        """W̃ of a kernel (C_out, C, kh, kw); its last column is zero."""
        wide = weight.new_zeros(4 * self.out_channels * (self.inputs + 1))
        wide[self._places] = weight.reshape(1, -1)
        return wide.view(4 * self.out_channels, -1)

    def fold(self, wide: Tensor) -> Tensor:
        """The transpose of ``expand``: the gradient of the kernel from that of W̃, whose last column does not matter."""
        shape = (self.out_channels, self.channels, *self.kernel)
        return wide.view(-1).index_select(0, self._places.view(-1)).view(4, -1).sum(0).view(shape)

    @property
    def inputs(self) -> int:
        """Numbers that the four outputs of one pooled position see."""
        return self.channels * self.window[0] * self.window[1]

    @cached_property
    def _places(self) -> Tensor:
        """Where each entry of the kernel stands in W̃: (4, number of entries)."""
        (kh, kw), (rows, columns) = self.kernel, self.window
        numbers = torch.arange(4 * self.out_channels * (self.inputs + 1)).view(4, self.out_channels, -1)
        planes = numbers[..., :-1].view(4, self.out_channels, self.channels, rows, columns)
        places = [plane[..., dy : dy + kh, dx : dx + kw] for plane, (dy, dx) in zip(planes, _SHIFTS, strict=True)]
        return torch.stack([place.reshape(-1) for place in places])
