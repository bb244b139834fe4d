"""The kinds of augmentation (what leaves the class alone depends on what the examples are), and RandAugment in them.

RandAugment (Cubuk et al., 2020) with FixMatch's ranges: per image two operations are drawn independently and uniformly
from the pool, each with an amount of its own, uniform in its range. The geometric ones are multiplied into one matrix
per image, so that an image is resampled once at most; the color operations follow in the order of the draws. Where a
color operation was drawn before a geometric one, the two are thus exchanged, which makes little difference: brightness
and color commute with a resampling, and the others see interpolated pixels and a repeated border. The pool is
FixMatch's too, without its histogram equalization.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wrssl.data.augment.color import OPERATIONS
from wrssl.data.augment.geometry import affine_matrix, random_cutout, random_move, resample, uniform, whole

DRAWS = 2
IDENTITY = "identity"
GEOMETRY = ("turn", "shear_x", "shear_y", "move_x", "move_y")
_TURN, _SHEAR = math.radians(30), 0.3  # FixMatch's ±30° and ±0.3; its moves are ±0.3 of the side
_MOVE = 0.3  # of the side, FixMatch's
# MNIST leaves 4 of 28 pixels around a digit, so that a digit moved farther than this loses a part of itself.
_MOVE_SHAPES = 0.15
# σ of the input noise that the references give Π-Model and Mean Teacher; the strong view has twice as much.
NOISE = 0.15


class RandAugment:
    """Random operations for images of one kind.

    Args:
        colors: the color operations in the pool, names of ``color.OPERATIONS``.
        move: the largest move, as a share of the side.
        limits: the least and the largest value of the inputs.

    Attributes:
        pool: the names of all operations; a drawn number is a place in it.
    """

    def __init__(self, colors: tuple[str, ...], move: float, limits: tuple[float, float]) -> None:
        self.move, self.limits = move, limits
        # Without a range of values no color can change.
        self.pool = (IDENTITY, *GEOMETRY, *(colors if limits[0] < limits[1] else ()))

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """New images from ``x`` ``(B, C, H, W)``."""
        drawn, amount = self.draw(x, generator)
        return self.colors(self.geometry(x, drawn, amount), drawn, amount)

    def draw(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Which operations, and how much of each in [0, 1); both ``(DRAWS, B)``."""
        shape = (DRAWS, len(x))
        return whole(len(self.pool), shape, generator, x), uniform(shape, generator, x)

    def geometry(self, x: Tensor, drawn: Tensor, amount: Tensor) -> Tensor:
        """A copy of ``x`` in which every image that drew a geometric operation is resampled once."""
        reach = (_TURN, _SHEAR, _SHEAR, self.move * x.shape[3], self.move * x.shape[2])
        signed, chosen = 2 * amount - 1, [drawn == self.pool.index(name) for name in GEOMETRY]
        first, *later = affine_matrix(*(mask * (far * signed) for mask, far in zip(chosen, reach, strict=True)))
        for matrix in later:
            first = first @ matrix
        out = x.clone()
        rows = torch.stack(chosen).flatten(0, 1).any(0).nonzero().flatten()
        if len(rows):
            out[rows] = resample(x[rows], first[rows])
        return out

    def colors(self, x: Tensor, drawn: Tensor, amount: Tensor) -> Tensor:
        """The color operations, in place, only on the images that drew them."""
        low, high = self.limits
        for numbers, shares in zip(drawn, amount, strict=True):
            for place in range(1 + len(GEOMETRY), len(self.pool)):
                rows = (numbers == place).nonzero().flatten()
                if len(rows):
                    change, least, most = OPERATIONS[self.pool[place]]
                    unit = ((x[rows] - low) / (high - low)).clamp(0, 1)
                    new = change(unit, least + (most - least) * shares[rows])
                    x[rows] = (low + (high - low) * new).clamp(low, high)
        return x


class Table:
    """Rows of numbers: noise is the only change known to be harmless.

    Args:
        noise: σ.
    """

    def __init__(self, noise: float = NOISE) -> None:
        self.noise = noise

    def weak(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The example itself."""
        return x

    def strong(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Noise added: x + 2σ · n with n ~ N(0, I)."""
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=generator.device)
        return x + 2 * self.noise * noise.to(x.device)


class Shapes:
    """Digits and letters: position, angle and slant may change, there is no mirroring and no color.

    Args:
        limits: the least and the largest value of the inputs; the least one is the background.
    """

    def __init__(self, limits: tuple[float, float]) -> None:
        self.background = limits[0]
        self.change = RandAugment((), _MOVE_SHAPES, limits)

    def weak(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The example itself."""
        return x

    def strong(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Two geometric operations, then a square of background."""
        return random_cutout(self.change(x, generator), self.background, generator)


class Photos:
    """Images in color, or of several channels.

    Args:
        channels: C; saturation needs three.
        limits: the least and the largest value of the inputs.
        mirrors: whether a mirrored image has the same class: true for photographs, not for signs such as house numbers.
    """

    def __init__(self, channels: int, limits: tuple[float, float], mirrors: bool) -> None:
        self.middle, self.mirrors = (limits[0] + limits[1]) / 2, mirrors
        colors = tuple(name for name in OPERATIONS if channels == 3 or name != "color")
        self.change = RandAugment(colors, _MOVE, limits)

    def weak(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Moved by up to an eighth of each side, and mirrored with probability 1/2 where that is allowed."""
        return random_move(x, self.mirrors, generator)

    def strong(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The weak view, two operations from the whole pool, then a square of the middle value."""
        return random_cutout(self.change(self.weak(x, generator), generator), self.middle, generator)
