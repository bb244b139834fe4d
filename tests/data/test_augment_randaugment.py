from __future__ import annotations

import math

import pytest
import torch

from wrssl.data.augment.color import OPERATIONS
from wrssl.data.augment.kinds import GEOMETRY, IDENTITY, RandAugment

ALL = tuple(OPERATIONS)
UNIT = (0.0, 1.0)


def images(number: int, *shape: int) -> torch.Tensor:
    return torch.rand((number, *shape), generator=torch.Generator().manual_seed(7), dtype=torch.float64)


def fixed(change: RandAugment, *steps: tuple[str, float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws for one image, as ``RandAugment.draw`` gives them."""
    drawn = torch.tensor([[change.pool.index(name)] for name, _ in steps])
    return drawn, torch.tensor([[amount] for _, amount in steps], dtype=torch.float64)


@pytest.mark.parametrize("colors", [(), ALL])
def test_every_operation_is_equally_likely_in_both_draws(colors, generator):
    change = RandAugment(colors, 0.3, UNIT)
    assert change.pool == (IDENTITY, *GEOMETRY, *colors)
    drawn, amount = change.draw(torch.empty(2000, 3, 4, 4), generator)
    size = len(change.pool)
    wanted, spread = 2000 / size, math.sqrt(2000 / size)
    for draws in drawn:
        assert (torch.bincount(draws, minlength=size) - wanted).abs().max() < 4 * spread
    assert abs(int((drawn[0] == drawn[1]).sum()) - wanted) < 4 * spread  # independent of each other
    assert 0 <= amount.min() < 0.01 < 0.99 < amount.max() < 1
    assert abs(torch.corrcoef(amount)[0, 1]) < 0.1


def test_two_geometric_operations_in_the_drawn_order():
    change, phi, slide = RandAugment((), 0.2, UNIT), math.radians(30) * 0.8, 0.2 * 40 * 0.6
    down, right = torch.meshgrid(*(torch.arange(n) - (n - 1) / 2 for n in (30, 40)), indexing="ij")

    def smooth(x, y):
        return 0.5 + 0.4 * torch.sin(0.2 * x + 0.1) * torch.cos(0.15 * y)

    x = smooth(right.double(), down.double())[None, None]
    got = change.geometry(x, *fixed(change, ("turn", 0.9), ("move_x", 0.8)))[0, 0]
    # First turned, then moved to the right: a pixel comes from p − t, and that one from the turned place of p − t.
    cos, sin = math.cos(phi), math.sin(phi)
    moved = right - slide
    wanted = smooth(cos * moved - sin * down, sin * moved + cos * down)
    other = smooth(cos * right - sin * down - slide, sin * right + cos * down)
    inner = (slice(10, 20), slice(15, 25))
    assert (got - wanted)[inner].abs().max() < 0.01
    assert (got - other)[inner].abs().max() > 0.05


def test_ranges_of_the_geometric_operations():
    change = RandAugment((), 0.25, UNIT)
    for name in GEOMETRY:
        x = images(1, 1, 12, 20)
        middle = change.geometry(x, *fixed(change, (name, 0.5), ("identity", 0.9)))
        assert (middle - x).abs().max() < 1e-12
    x = images(1, 1, 12, 20)
    left = change.geometry(x, *fixed(change, ("move_x", 0.0), ("identity", 0.0)))
    up = change.geometry(x, *fixed(change, ("move_y", 0.0), ("identity", 0.0)))
    assert (left[..., :15] - x[..., 5:]).abs().max() < 1e-12  # a quarter of 20, and of 12
    assert (up[..., :9, :] - x[..., 3:, :]).abs().max() < 1e-12
    points = torch.arange(20, dtype=torch.float64).expand(1, 1, 12, 20)  # each pixel says which column it is
    slant = change.geometry(points, *fixed(change, ("shear_x", 1.0), ("identity", 0.0)))[0, 0, :, 10]
    assert slant.diff().tolist() == pytest.approx([0.3] * 11, abs=1e-9)
    rows = points[..., :12].transpose(2, 3)
    slant = change.geometry(rows, *fixed(change, ("shear_y", 0.0), ("identity", 0.0)))[0, 0, 6]
    assert slant.diff().tolist() == pytest.approx([-0.3] * 11, abs=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_color_operations_work_on_the_unit_scale_of_the_limits(name):
    change, x = RandAugment(ALL, 0.3, (-1.0, 3.0)), images(1, 3, 8, 8)
    function, low, high = OPERATIONS[name]
    wanted = function(x, torch.tensor([low + 0.3 * (high - low)], dtype=torch.float64))
    got = change.colors(4 * x - 1, *fixed(change, (name, 0.3), ("identity", 0.0)))
    assert (got - (4 * wanted - 1)).abs().max() < 1e-12
    assert (wanted - x).abs().max() > 1e-3


def test_color_operations_follow_the_drawn_order():
    change, x = RandAugment(ALL, 0.3, UNIT), images(1, 3, 8, 8)
    dim, invert = ("brightness", 0.5), ("solarize", 0.0)
    assert (change.colors(x.clone(), *fixed(change, dim, invert)) - (1 - 0.5 * x)).abs().max() < 1e-12
    assert (change.colors(x.clone(), *fixed(change, invert, dim)) - 0.5 * (1 - x)).abs().max() < 1e-12


def test_images_change_only_by_what_they_drew(generator):
    change, x = RandAugment(ALL, 0.3, UNIT), images(600, 3, 8, 8)
    drawn, amount = change.draw(x, generator)
    got = change.colors(change.geometry(x, drawn, amount), drawn, amount)
    still = (drawn == change.pool.index(IDENTITY)).all(0)
    assert 0 < still.sum() < 20
    assert torch.equal(got[still], x[still])  # bit for bit
    assert not (got[~still] == x[~still]).flatten(1).all(1).any()
    alone = 17
    one = change.geometry(x[alone : alone + 1], drawn[:, alone : alone + 1], amount[:, alone : alone + 1])
    one = change.colors(one, drawn[:, alone : alone + 1], amount[:, alone : alone + 1])
    assert (one - got[alone]).abs().max() < 1e-12  # the company in the batch does not matter


def test_rounding_never_leaves_the_limits():
    x = torch.tensor([0.0, 1.0]).view(1, 1, 1, 2)
    for number in range(200):
        low = torch.rand((), generator=torch.Generator().manual_seed(number)).item()
        high = torch.tensor(low + 1.7).item()
        change = RandAugment(ALL, 0.3, (low, high))
        got = change.colors(low + (high - low) * x, *fixed(change, ("autocontrast", 0.0), ("identity", 0.0)))
        assert low <= got.min() < got.max() <= high


def test_inputs_beyond_the_limits_are_taken_as_the_limits():
    change, x = RandAugment(ALL, 0.3, UNIT), torch.tensor([-0.5, 0.2, 1.5, 1.0]).view(1, 1, 2, 2)
    got = change.colors(x.clone(), *fixed(change, ("brightness", 0.5), ("identity", 0.0)))
    assert got.flatten().tolist() == pytest.approx([0.0, 0.1, 0.5, 0.5])
