"""Two random operations per image (Cubuk et al., 2020: "RandAugment"), with FixMatch's ranges.

Per image two operations are drawn independently and uniformly from the pool, each with an amount of its own, uniform in
its range. The geometric ones are multiplied into one matrix per image, so that an image is resampled once at most; the
colour operations follow in the order of the draws. Where a colour operation was drawn before a geometric one, the two
are thus exchanged, which makes little difference: brightness and colour commute with a resampling, and the others see
interpolated pixels and a repeated border. The pool is FixMatch's too, without its histogram equalisation.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wrssl.data.augment.affine import affine_matrix, resample
from wrssl.data.augment.colour import OPERATIONS
from wrssl.data.augment.draws import uniform, whole

DRAWS = 2
IDENTITY = "identity"
GEOMETRY = ("turn", "shear_x", "shear_y", "move_x", "move_y")
_TURN, _SHEAR = math.radians(30), 0.3  # FixMatch's ±30° and ±0.3; its moves are ±0.3 of the side


class RandAugment:
    """Random operations for images of one kind.

    Args:
        colours: the colour operations in the pool, names of ``colour.OPERATIONS``.
        move: the largest move, as a share of the side.
        limits: the least and the largest value of the inputs.

    Attributes:
        pool: the names of all operations; a drawn number is a place in it.
    """

    def __init__(self, colours: tuple[str, ...], move: float, limits: tuple[float, float]) -> None:
        self.move, self.limits = move, limits
        # Without a range there is no colour that could change.
        self.pool = (IDENTITY, *GEOMETRY, *(colours if limits[0] < limits[1] else ()))

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """New images from ``x`` ``(B, C, H, W)``."""
        drawn, amount = self.draw(x, generator)
        return self.colours(self.geometry(x, drawn, amount), drawn, amount)

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

    def colours(self, x: Tensor, drawn: Tensor, amount: Tensor) -> Tensor:
        """The colour operations, done in ``x`` itself, only on the images that drew them."""
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
