"""The kinds of augmentation: what leaves the class alone depends on what the examples are."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.data.augment.colour import OPERATIONS
from wrssl.data.augment.cutout import random_cutout
from wrssl.data.augment.randaugment import RandAugment
from wrssl.data.augment.shift import random_move

# σ of the input noise that the references give Π-Model and Mean Teacher; the strong view has twice as much.
_SIGMA = 0.15
_MOVE = 0.3  # of the side, FixMatch's
# MNIST leaves 4 of 28 pixels around a digit, so that a digit moved farther than this loses a part of itself.
_MOVE_SHAPES = 0.15


class Table:
    """Rows of numbers: noise is all that is known to be harmless."""

    def weak(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The example itself."""
        return x

    def strong(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Noise added: x + 2σ · n with n ~ N(0, I)."""
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=generator.device)
        return x + 2 * _SIGMA * noise.to(x.device)


class Shapes:
    """Digits and letters: position, angle and slant may change, left and right may not, and there is no colour.

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
    """Images in colour, or of several channels.

    Args:
        channels: C; saturation needs three.
        limits: the least and the largest value of the inputs.
        mirrors: whether a mirror image is the same thing: so for photographs, not for signs such as house numbers.
    """

    def __init__(self, channels: int, limits: tuple[float, float], mirrors: bool) -> None:
        self.middle, self.mirrors = (limits[0] + limits[1]) / 2, mirrors
        colours = tuple(name for name in OPERATIONS if channels == 3 or name != "colour")
        self.change = RandAugment(colours, _MOVE, limits)

    def weak(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Moved by up to an eighth of each side, and mirrored with probability 1/2 where that is allowed."""
        return random_move(x, self.mirrors, generator)

    def strong(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The weak view, two operations from the whole pool, then a square of the middle value."""
        return random_cutout(self.change(self.weak(x, generator), generator), self.middle, generator)
