"""A convolution with 2 x 2 pooling after it as one matrix product.

Examples lie innermost: activations are (C, H, W, N) in memory, so that every copy and every elementwise operation runs
over contiguous stretches of at least N numbers, however small the images are.

The four outputs that are pooled together see a window of (kh+1) x (kw+1) inputs. The kernel, written four times with
the shifts (dy, dx) ∈ {0, 1}² into rows of zeros, gives W̃, (4·C_out, (kh+1)·C·(kw+1)). Gathering the kw+1 neighbors of
every pooled column, line by line, gives A, (H, C, kw+1, right, N); its lines 2y … 2y+kh are what row y of the pooled
image sees, a matrix A_y of (kh+1)·C·(kw+1) rows without another copy, and W̃ A_y holds the four outputs in four planes.
This multiplies (1 + 1/kh)(1 + 1/kw) times more than needed, but A is only (kw+1)/2 times as large as the images, and
one A_y with its product stays in a fast cache; for the few channels of small networks that is faster.

The memory for it is reused (``Buffers``). A fresh tensor of a megabyte costs more than most operations that fill it:
the operating system maps its pages one by one, at the first access to each. A training step needs the same shapes every
time, so they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

Key = tuple[tuple[int, ...], torch.dtype, float | None]


class Buffers:
    """The tensors that are free now; a ``Lease`` takes them."""

    def __init__(self) -> None:
        self.free: dict[Key, list[Tensor]] = {}

    def lease(self) -> Lease:
        """An object that takes tensors and returns all of them when it is deleted."""
        return Lease(self)


class Lease:
    """Tensors that belong to one computation as long as this object lives.

    An autograd context holds a lease, so that what backward needs is not reused before its graph is gone, however often
    backward runs. Nothing taken from a lease may outlive it, views included.
    """

    def __init__(self, buffers: Buffers) -> None:
        self._buffers, self._taken = buffers, list[tuple[Key, Tensor]]()

    def take(self, like: Tensor, *shape: int, filled: float | None = None) -> Tensor:
        """A tensor of this shape with anything in it.

        With ``filled`` it holds this number when new, and is kept apart from the others: a caller that writes the same
        places of it every time finds the other places unchanged.
        """
        key = (shape, like.dtype, filled)
        shelf = self._buffers.free.get(key)
        if shelf is None:
            shelf = self._buffers.free[key] = []
        tensor = shelf.pop() if shelf else _new(like, shape, filled)
        self._taken.append((key, tensor))
        return tensor

    def __del__(self) -> None:
        for key, tensor in self._taken:
            self._buffers.free[key].append(tensor)


def _new(like: Tensor, shape: tuple[int, ...], filled: float | None) -> Tensor:
    return like.new_empty(shape) if filled is None else like.new_full(shape, filled)


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

    @cached_property
    def line(self) -> tuple[int, ...]:
        """The shape of A without its examples: height, channels, neighbors, pooled columns."""
        return self.padded[0], self.channels, self.window[1], self.pooled[1]

    def windows(self, a: Tensor) -> Tensor:
        """A_y for all rows y of the pooled images, a view of A: (down, inputs, right·N)."""
        right = self.pooled[1] * a.shape[-1]
        step = self.channels * self.window[1] * right
        return a.as_strided((self.pooled[0], self.inputs, right), (2 * step, right, 1))

    def neighbors(self, image: Tensor) -> Tensor:
        """A view of the padded images (C, H, W, N) in the shape of A."""
        n = image.shape[-1]
        width = self.padded[1] * n
        strides = (width, self.padded[0] * width, n, 2 * n, 1)
        return image.as_strided((*self.line, n), strides)

    def expand(self, weight: Tensor) -> Tensor:
        """W̃ of a kernel (C_out, C, kh, kw)."""
        wide = weight.new_zeros(4 * self.out_channels * self.inputs)
        wide[self._places] = weight.reshape(1, -1)
        return wide.view(4 * self.out_channels, -1)

    def fold(self, wide: Tensor) -> Tensor:
        """The transpose of ``expand``: the gradient of the kernel from that of W̃."""
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
        numbers = torch.arange(4 * self.out_channels * self.inputs)
        planes = numbers.view(4, self.out_channels, rows, self.channels, columns).transpose(2, 3)
        places = [plane[..., dy : dy + kh, dx : dx + kw] for plane, (dy, dx) in zip(planes, _SHIFTS, strict=True)]
        return torch.stack([place.reshape(-1) for place in places])
