from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.data.augment.geometry import covered, moved, random_cutout, random_move


def places(number: int, height: int, width: int) -> torch.Tensor:
    """Two channels: the row and the column of each pixel."""
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([rows, columns]).double().expand(number, 2, height, width).contiguous()


@pytest.mark.parametrize(("height", "width"), [(32, 32), (8, 8), (6, 17)])
def test_moves_are_slices_of_the_reflected_image(height, width):
    x = torch.rand((40, 3, height, width), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rng = np.random.default_rng(2)
    down, right, mirror = rng.integers(-4, 5, 40), rng.integers(-4, 5, 40), rng.random(40) < 0.5
    got = moved(x, *(torch.as_tensor(value) for value in (down, right, mirror))).numpy()
    for j, image in enumerate(x.numpy()):
        image = image[..., ::-1] if mirror[j] else image
        padded = np.pad(image, ((0, 0), (4, 4), (4, 4)), mode="reflect")
        top, left = 4 - down[j], 4 - right[j]
        assert np.array_equal(got[j], padded[:, top : top + height, left : left + width])


@pytest.mark.parametrize(
    ("height", "width", "far"), [(32, 32, (4, 4)), (28, 16, (3, 2)), (8, 8, (1, 1)), (7, 7, (0, 0))]
)
def test_random_moves_are_uniform_up_to_an_eighth(height, width, far, generator):
    out = random_move(places(3000, height, width), False, generator)
    middle = out[:, :, height // 2, width // 2]
    for axis, (side, most) in enumerate(zip((height, width), far, strict=True)):
        shift, count = torch.unique(side // 2 - middle[:, axis], return_counts=True)
        assert shift.tolist() == list(range(-most, most + 1))
        assert count.min() > 0.75 * 3000 / (2 * most + 1)


def test_half_of_the_images_are_mirrored_where_asked(generator):
    x = places(2000, 32, 32)
    mirrored = {}
    for mirrors in (False, True):
        out = random_move(x, mirrors, generator)
        mirrored[mirrors] = (out[:, 1, 16, 10] > out[:, 1, 16, 20]).double().mean().item()
    assert mirrored[False] == 0
    assert abs(mirrored[True] - 0.5) < 0.06


def test_the_covered_square_pixel_by_pixel():
    x = torch.rand((60, 2, 9, 14), generator=torch.Generator().manual_seed(5))
    rng = np.random.default_rng(6)
    side, row, column = rng.integers(1, 5, 60), rng.integers(0, 9, 60), rng.integers(0, 14, 60)
    got = covered(x, *(torch.as_tensor(value) for value in (side, row, column)), -3.0).numpy()
    for j, image in enumerate(x.numpy().copy()):
        top, left = row[j] - side[j] // 2, column[j] - side[j] // 2
        image[:, max(top, 0) : top + side[j], max(left, 0) : left + side[j]] = -3.0
        assert np.array_equal(got[j], image)


@pytest.mark.parametrize(("height", "width", "largest"), [(28, 28, 14), (8, 8, 4), (32, 12, 6)])
def test_random_squares_have_every_side_and_reach_every_pixel(height, width, largest, generator):
    out = random_cutout(torch.ones(4000, 1, height, width), 0.0, generator)[:, 0]
    rows, columns = (out == 0).any(2).sum(1), (out == 0).any(1).sum(1)
    assert torch.equal((out == 0).sum((1, 2)), rows * columns)  # one rectangle, cut off at the border or not at all
    assert rows.min() >= 1
    whole = rows[(out[:, 0] == 1).all(1) & (out[:, -1] == 1).all(1)]
    sides, count = torch.unique(whole, return_counts=True)
    assert sides.tolist() == list(range(1, largest + 1))
    assert count[0] < 2 * 4000 / largest
    assert (out == 0).any(0).all()


def test_an_image_of_one_pixel_stays(generator):
    x = torch.ones(3, 1, 1, 5)
    assert torch.equal(random_cutout(x, 0.0, generator), x)
