"""A convolution with 2 x 2 pooling after it as one matrix product.

Examples lie innermost: activations are (C, H, W, N) in memory, so that every copy and every elementwise operation runs
over contiguous stretches of at least N numbers, however small the images are.

The four outputs that are pooled together see a window of (kh+1) x (kw+1) inputs. Gathering one window per pooled
position and example gives A, (C·(kh+1)·(kw+1), positions·N); the kernel, written four times with the shifts
(dy, dx) ∈ {0, 1}² into rows of zeros, gives W̃, (4·C_out, C·(kh+1)·(kw+1)); and W̃ A holds the four outputs in four
planes. Both have one entry more per column and row, a one in A and a zero in W̃, which can hold a bias. This multiplies (1 + 1/kh)(1 + 1/kw) times more than needed, and gathers (kh+1)(kw+1)/4 numbers per output
instead of kh·kw; for the few channels of small networks that is a good bargain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from wrssl.fast.buffers import Lease

# Planes are ordered (dx, dy): comparing the halves decides within a row, then the quarters between rows, and the first
# of equal values wins as in torch's max-pooling.
_SHIFTS = [(dy, dx) for dx in (0, 1) for dy in (0, 1)]


_Piece = tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...], int]
_Pieces = tuple[tuple[int, int], list[_Piece]]


@dataclass(frozen=True)
class Geometry:
    """The sizes of one block: a stride-1 convolution of (C, H, W) with zero padding, then 2 x 2 max-pooling."""

    channels: int
    out_channels: int
    kernel: tuple[int, int]
    padding: tuple[int, int]
    height: int
    width: int
    _known: dict[int, _Pieces] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def result(self) -> tuple[int, ...]:
        """The shape of one example in the result."""
        return (self.out_channels, *self.pooled)

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

    def gather(self, x: Tensor, lease: Lease) -> tuple[Tensor, Tensor]:
        """A with ones as its last row, from ``x`` (N, C, H, W) with any strides; and the padded images, (C, H, W, N)."""
        n, (height, width), (down, right) = x.shape[0], self.padded, self.pooled
        source = x.permute(1, 2, 3, 0)
        if any(self.padding):
            top, left = self.padding
            image = lease.take(x, self.channels, height, width, n, filled=0)
            image[:, top : top + self.height, left : left + self.width].copy_(source)
        else:
            image = source.contiguous()
        windows = self._windows(image, n)
        result = lease.take(x, self._inputs + 1, down * right * n, filled=1)
        result.as_strided(windows.shape, self._within(n)).copy_(windows)
        return result, image

    @cached_property
    def box(self) -> Tensor:
        """The map from an image, averaged over examples, to the mean of each row of A over positions: (rows, C·H·W)."""
        pixels = torch.arange(self.channels * self.padded[0] * self.padded[1])
        read = self._windows(pixels, 1).reshape(-1, self.pooled[0] * self.pooled[1])
        share = torch.zeros(len(read), len(pixels), dtype=torch.float64)
        return share.scatter_(1, read, 1 / read.shape[1])

    def _windows(self, image: Tensor, n: int) -> Tensor:
        """A view of the padded images, (C, kh+1, kw+1, down, right, N)."""
        (height, width), line = self.padded, self.padded[1] * n
        return image.as_strided(
            (self.channels, *self.window, *self.pooled, n), (height * line, line, n, 2 * line, 2 * n, 1)
        )

    def _within(self, n: int) -> tuple[int, ...]:
        """The strides of A as (C, kh+1, kw+1, down, right, N)."""
        (rows, columns), (down, right) = self.window, self.pooled
        row = down * right * n
        return rows * columns * row, columns * row, row, right * n, n, 1

    def scatter(self, a: Tensor, n: int) -> Tensor:
        """The transpose of ``gather``: every entry of A added to the input that it was read from, (N, C, H, W).

        ``a`` comes without the row of ones. Four neighbours of a window at a time: those of all windows are apart.
        """
        (top, left), (height, width) = self.padding, self.padded
        (tall, wide), pieces = self._pieces(n)
        out = a.new_zeros(self.channels, tall, wide, n)
        for size, at, start, into, offset in pieces:
            out.as_strided(size, into, offset).add_(a.as_strided(size, at, start))
        if not (top or left) and (tall, wide) == (height, width):
            return out.permute(3, 0, 1, 2)
        return out[:, top : top + self.height, left : left + self.width].permute(3, 0, 1, 2)

    def _pieces(self, n: int) -> _Pieces:
        """The views of A and of the image that are added: (size, strides and start in A, strides and start in it)."""
        if n not in self._known:
            (rows, columns), (down, right) = self.window, self.pooled
            tall, wide = 2 * down + (rows - 1) // 2 * 2, 2 * right + (columns - 1) // 2 * 2
            c, r, s, y, x, one = self._within(n)
            pieces = []
            for dy in range(0, rows, 2):
                for dx in range(0, columns, 2):
                    h, w = min(2, rows - dy), min(2, columns - dx)
                    size = (self.channels, down, h, right, w, n)
                    into = (tall * wide * n, 2 * wide * n, wide * n, 2 * n, n, 1)
                    pieces.append((size, (c, y, r, x, s, one), dy * r + dx * s, into, (dy * wide + dx) * n))
            self._known[n] = (tall, wide), pieces
        return self._known[n]

    def expand(self, weight: Tensor) -> Tensor:
        """W̃ of a kernel (C_out, C, kh, kw); its last column is zero."""
        wide = weight.new_zeros(4 * self.out_channels * (self._inputs + 1))
        wide[self._places] = weight.reshape(1, -1)
        return wide.view(4 * self.out_channels, -1)

    def fold(self, wide: Tensor) -> Tensor:
        """The transpose of ``expand``: the gradient of the kernel from that of W̃, whose last column does not matter."""
        shape = (self.out_channels, self.channels, *self.kernel)
        return wide.reshape(-1)[self._places].sum(0).view(shape)

    @property
    def _inputs(self) -> int:
        return self.channels * self.window[0] * self.window[1]

    @cached_property
    def _places(self) -> Tensor:
        """Where each entry of the kernel stands in W̃: (4, number of entries)."""
        (kh, kw), (rows, columns) = self.kernel, self.window
        numbers = torch.arange(4 * self.out_channels * (self._inputs + 1)).view(4, self.out_channels, -1)
        planes = numbers[..., :-1].view(4, self.out_channels, self.channels, rows, columns)
        places = [plane[..., dy : dy + kh, dx : dx + kw] for plane, (dy, dx) in zip(planes, _SHIFTS, strict=True)]
        return torch.stack([place.reshape(-1) for place in places])
