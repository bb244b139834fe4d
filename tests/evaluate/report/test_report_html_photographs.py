"""Pictures of what was embedded: the middle of each, gray where a file is gone, and no more files than are shown."""

from __future__ import annotations

import base64
import io
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from wrssl.data import Items
from wrssl.evaluate.report import thumbnails
from wrssl.evaluate.report.photographs import GRAY, SIDE, squares
from wrssl.evaluate.report.thumbnails import sheet_of_items


def opened(sheet):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(sheet["uri"].partition(",")[2]))).convert("RGB"))


def cell(sheet, number):
    line, column = divmod(number, sheet["columns"])
    side = sheet["width"]
    return opened(sheet)[line * side : (line + 1) * side, column * side : (column + 1) * side].astype(float)


@pytest.fixture
def noise():
    return np.random.default_rng(0)


@pytest.mark.parametrize(("height", "width"), [(40, 60), (60, 40), (41, 60)])
def test_the_largest_square_in_the_middle_is_shown(noise, height, width):
    whole = noise.integers(0, 256, (height, width, 3), dtype=np.uint8)
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    np.testing.assert_array_equal(squares([whole]).pixels[0], whole[top : top + side, left : left + side])


def test_large_pictures_are_averaged(noise):
    whole = noise.integers(0, 256, (4 * SIDE, 6 * SIDE, 3), dtype=np.uint8)
    middle = whole[:, SIDE : 5 * SIDE].astype(float)
    means = middle.reshape(SIDE, 4, SIDE, 4, 3).mean((1, 3))
    np.testing.assert_allclose(squares([whole]).pixels[0], means, rtol=0, atol=1)  # rounded across, then down


def test_files_are_opened_as_a_viewer_would_show_them(tmp_path):
    """A wide picture that EXIF turns upright: red above green above blue."""
    pixels = np.zeros((90, 270, 3), np.uint8)
    for third in range(3):
        pixels[:, 90 * third : 90 * (third + 1), third] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(tmp_path / "turned.png", exif=exif)
    (found,) = squares([str(tmp_path / "turned.png")]).pixels
    assert found.shape == (SIDE, SIDE, 3)
    assert found[SIDE // 2, SIDE // 2].tolist() == [0, 255, 0]


def test_gray_pictures_and_different_sizes_go_together(noise):
    small, large = np.full((8, 8), 77, np.uint8), noise.integers(0, 256, (30, 30, 3), dtype=np.uint8)
    found = squares([small, large]).pixels
    assert found.shape == (2, 30, 30, 3)
    assert (found[0] == 77).all()
    np.testing.assert_array_equal(found[1], large)


def test_what_cannot_be_opened_any_more_is_gray_and_counted(tmp_path):
    Image.new("RGB", (20, 20), (200, 0, 0)).save(tmp_path / "good.png")
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("no picture")
    names = ["good.png", "gone.png", "empty.png", "text.png", "null\0.png", "."]
    found = squares([str(tmp_path / name) for name in names])
    assert found.missing == 5
    assert found.pixels[0, 10, 10].tolist() == [200, 0, 0]
    assert (found.pixels[1:] == GRAY).all()
    assert squares([str(tmp_path / "gone.png")]).pixels.shape == (1, 1, 1, 3)


def test_the_sheet_has_each_picture_in_its_cell():
    colors = np.random.default_rng(1).integers(0, 256, (70, 3), dtype=np.uint8)
    sheet = sheet_of_items([np.broadcast_to(color, (16, 16, 3)) for color in colors])
    assert (sheet["columns"], sheet["lines"], sheet["width"], sheet["missing"]) == (32, 3, 16, 0)
    for number in (0, 31, 32, 69):
        np.testing.assert_allclose(cell(sheet, number)[4:12, 4:12].mean((0, 1)), colors[number], atol=6)


def test_noise_stays_within_the_budget(noise, monkeypatch):
    monkeypatch.setattr(thumbnails, "ITEMS_BUDGET", 60_000)
    sheet = sheet_of_items(list(noise.integers(0, 256, (150, 64, 64, 3), dtype=np.uint8)))
    assert len(sheet["uri"]) <= 60_000 * 4 / 3 + 100
    assert sheet["width"] == sheet["height"] >= 16


class Counted(list):
    """Remembers which of its items were asked for."""

    def __init__(self, items):
        super().__init__(items)
        self.asked = []

    def __getitem__(self, place):
        self.asked.append(place)
        return super().__getitem__(place)


def test_only_members_that_are_shown_are_opened_and_each_once(make_in_embedding):
    size, labels = 1300, 6
    tile = np.zeros((4, 4, 3), np.uint8)
    items = Items("image", Counted([tile] * 3 * labels), Counted([tile] * size))
    page = make_in_embedding(size, labels=labels, items=items).collect()
    assert len(items.pool.asked) == 1000
    assert sorted(items.pool.asked) == sorted(page["shown"]["members"])
    assert sorted(items.labeled.asked) == sorted(page["labeled"]["rows"])


class Large(Sequence):
    """Pictures of a megabyte each, made when they are asked for."""

    def __len__(self):
        return 300

    def __getitem__(self, place):
        return np.full((600, 600, 3), place % 256, np.uint8)


def test_large_pictures_are_not_in_memory_at_once():
    squares(Large())  # loads what it needs
    tracemalloc.start()
    found = squares(Large())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.pixels[:, 0, 0, 0].tolist() == [k % 256 for k in range(300)]
    assert peak < 60e6


def test_members_and_labels_of_a_run_have_their_own_picture(make_in_embedding):
    run = make_in_embedding()
    page, items = run.collect(), run.scenario.embedding.items
    shown, rows = page["shown"]["members"], page["labeled"]["rows"]
    for number in (0, 77, 149):
        expected = items.pool[shown[number]][0, 0]
        np.testing.assert_allclose(cell(page["sheet"], number)[3:9, 3:9].mean((0, 1)), expected, atol=12)
    for number in (0, 17):
        expected = items.labeled[rows[number]][0, 0]
        found = cell(page["sheet"], len(shown) + number)[3:9, 3:9].mean((0, 1))
        np.testing.assert_allclose(found, expected, atol=12)
