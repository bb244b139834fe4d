"""The sheet of pictures: where each one is, what its values mean, and that it stays small."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from wrssl.evaluate.report import thumbnails
from wrssl.evaluate.report.thumbnails import picture, sheet, value_range


def opened(found):
    head, _, data = found["uri"].partition(",")
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert head == f"data:image/{image.format.lower()};base64"
    return np.asarray(image)


def cell(found, number):
    line, column = divmod(number, found["columns"])
    high, wide = found["height"], found["width"]
    return opened(found)[line * high : (line + 1) * high, column * wide : (column + 1) * wide]


def test_each_chosen_member_is_in_its_cell():
    pool = torch.arange(256, dtype=torch.uint8)[:, None, None, None].expand(256, 1, 6, 4).contiguous()
    chosen = list(range(255, 185, -1))
    found = sheet(pool, chosen)
    assert (found["columns"], found["lines"], found["width"], found["height"]) == (32, 3, 4, 6)
    for number in (0, 31, 32, 69):
        np.testing.assert_array_equal(cell(found, number), pool[chosen[number], 0])  # PNG: nothing is lost


def test_colors_stay_colors():
    pool = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    pool[0, 0], pool[1, 2] = 200, 100
    found = sheet(pool, [1, 0])
    assert found["columns"] == 2
    assert cell(found, 0)[4, 4].tolist() == [0, 0, 100]
    assert cell(found, 1)[4, 4].tolist() == [200, 0, 0]


@pytest.mark.parametrize(
    ("values", "limits"), [([0.0, 1.0], (0, 1)), ([-1.0, 1.0], (-1, 1)), ([-0.5, 0.5], (-1, 1)), ([0.25, 0.5], (0, 1))]
)
def test_usual_ranges_are_kept(values, limits):
    pool = torch.tensor(values).view(2, 1, 1, 1).expand(2, 1, 2, 2)
    assert value_range(pool, [0, 1]) == limits


def test_other_ranges_are_stretched_and_outliers_cut(generator):
    pool = 10 * torch.randn(50, 1, 10, 10, generator=generator)
    pool[0, 0, 0, 0] = 1e6
    low, high = value_range(pool, range(50))
    assert -40 < low < -15 < 15 < high < 40
    drawn = picture(pool[0], (low, high))
    assert drawn[0, 0] == 255
    assert drawn.std() > 30


def test_equal_values_are_no_division_by_zero():
    pool = torch.full((3, 1, 4, 4), 7.0)
    found = sheet(pool, [0, 1, 2])
    assert opened(found).shape == (4, 12)


@pytest.mark.parametrize(("channels", "mode"), [(1, 2), (2, 2), (3, 3), (6, 3)])
def test_any_number_of_channels(channels, mode, generator):
    pool = torch.randint(0, 256, (5, channels, 8, 8), generator=generator, dtype=torch.uint8)
    found = sheet(pool, [0, 1])
    assert found["channels"] == channels
    assert opened(found).ndim == mode


def test_large_images_become_small():
    found = sheet(torch.zeros(4, 1, 300, 150, dtype=torch.uint8), [0, 1])
    assert (found["width"], found["height"]) == (24, 48)


def test_noise_stays_within_the_budget(generator, monkeypatch):
    monkeypatch.setattr(thumbnails, "BUDGET", 60_000)
    pool = torch.randint(0, 256, (200, 3, 64, 64), generator=generator, dtype=torch.uint8)
    found = sheet(pool, range(200))
    assert len(found["uri"]) <= 60_000 * 4 / 3 + 100
    assert found["width"] >= 17


def test_tables_have_no_pictures():
    assert sheet(torch.zeros(4, 10), [0, 1]) is None
