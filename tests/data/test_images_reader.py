"""Reading many files: in order, by threads, with a bar, and the same way again."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wrssl import progress
from wrssl.data.images import ImageReader
from wrssl.data.images.reader import choose_jobs, in_order, make_reader
from wrssl.errors import DataError, OptionError

READER = ImageReader((4, 6), 3)


def save(folder: Path, number: int) -> list[Path]:
    paths = []
    for index in range(number):
        paths.append(folder / f"{index:03d}.png")
        Image.new("RGB", (6, 4), (index, 2 * index, 7)).save(paths[-1])
    return paths


@pytest.mark.parametrize("jobs", [1, 3])
def test_rows_come_in_the_order_of_the_paths(tmp_path, jobs):
    paths = save(tmp_path, 70)
    paths[10:10] = [tmp_path / "gone.png"]
    (tmp_path / "empty.png").touch()
    paths.append(tmp_path / "empty.png")
    rows, kept, skipped = READER.read(paths, jobs=jobs)
    assert rows.shape == (70, 3, 4, 6)
    assert rows.dtype == np.uint8
    assert rows[:, 0, 0, 0].tolist() == list(range(70))
    assert rows[:, 1, 3, 5].tolist() == [2 * index for index in range(70)]
    assert kept == paths[:10] + paths[11:-1]
    assert skipped == [
        (str(tmp_path / "gone.png"), "cannot be read (No such file or directory)"),
        (str(tmp_path / "empty.png"), "empty file"),
    ]


def test_strings_stay_strings_and_nothing_is_fine(tmp_path):
    (path,) = save(tmp_path, 1)
    assert READER.read([str(path)])[1] == [str(path)]
    rows, kept, skipped = READER.read([])
    assert (rows.shape, kept, skipped) == ((0, 3, 4, 6), [], [])


def test_warnings_of_pillow_stay_inside(tmp_path, monkeypatch):
    def grumble(image):
        warnings.warn("Corrupt EXIF data", UserWarning, stacklevel=1)
        return {}

    monkeypatch.setattr(Image.Image, "getexif", grumble)
    paths = save(tmp_path, 40)
    filters = list(warnings.filters)
    rows, _, skipped = READER.read(paths, jobs=2)  # here a warning is an error
    assert (len(rows), skipped) == (40, [])
    assert warnings.filters == filters


def test_a_reader_goes_through_json():
    reader = ImageReader((24, 32), 1, 5000)
    assert ImageReader.from_json(json.loads(json.dumps(reader.to_json()))) == reader
    with pytest.raises(DataError, match="rules number 99"):
        ImageReader.from_json(reader.to_json() | {"format": 99})
    for wrong in ({}, {"format": 1}, {"format": 1, "size": 3, "channels": 1, "max_pixels": 1}):
        with pytest.raises(DataError, match="does not describe how images were read"):
            ImageReader.from_json(wrong)


@pytest.mark.parametrize("size", [0, -3, 2.5, "32", None, True, (1, 2, 3), (8, 0), (8, 8.0)])
def test_sizes_that_are_none(size):
    with pytest.raises(OptionError, match="image_size must be"):
        make_reader(size, 3, 100)


@pytest.mark.parametrize("size", [8, np.int64(8), (8, 8), [8, 8]])
def test_sizes(size):
    assert make_reader(size, 3, 100) == ImageReader((8, 8), 3, 100)


@pytest.mark.parametrize("limit", [0, -1, 1e8, None, True])
def test_limits_that_are_none(limit):
    with pytest.raises(OptionError, match="max_pixels must be"):
        make_reader(8, 3, limit)


def test_numbers_of_threads():
    assert choose_jobs(5) == 5
    assert 1 <= choose_jobs(None) <= 16
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(OptionError, match="jobs must be"):
            choose_jobs(wrong)


def test_several_threads_work_at_once_and_not_too_far_ahead():
    meeting = threading.Barrier(3, timeout=10)
    begun = []

    def work(item: int) -> int:
        begun.append(item)
        if item < 3:
            meeting.wait()  # passes only if three threads are here
        return -item

    results = in_order(work, range(1000), jobs=3, batch=1)
    assert next(results) == 0
    time.sleep(0.05)  # no result is taken meanwhile
    assert len(begun) <= 7
    results.close()
    assert list(in_order(work, range(3, 50), 3, 4)) == [-item for item in range(3, 50)]


def test_closing_the_results_stops_the_work():
    gate, begun = threading.Event(), []

    def work(item: int) -> int:
        begun.append(item)
        return item if item == 0 or gate.wait(10) else -1

    results = in_order(work, range(1000), jobs=2, batch=1)
    assert next(results) == 0
    while len(begun) < 3:
        time.sleep(0.001)
    threading.Timer(0.05, gate.set).start()
    results.close()  # waits for the two that are under way, and only for them
    assert begun == [0, 1, 2]


def test_an_error_of_our_own_is_not_swallowed():
    def fail(item: int) -> int:
        raise RuntimeError(f"item {item}")

    with pytest.raises(RuntimeError, match="item 0"):
        list(in_order(fail, range(100), 2, 5))


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def watch(monkeypatch, patience: float) -> Screen:
    """A terminal in place of standard error; in the test itself, as pytest replaces it again after the fixtures."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", patience)
    return screen


def test_a_bar_counts_the_files_once_reading_takes_long(tmp_path, monkeypatch):
    paths, screen = save(tmp_path, 5), watch(monkeypatch, 60)
    assert len(READER.read(paths)[0]) == 5
    assert screen.getvalue() == ""
    monkeypatch.setattr(progress, "PATIENCE", 0)
    assert len(READER.read(paths, jobs=2)[0]) == 5
    assert "Reading images" in screen.getvalue()
    assert "/5" in screen.getvalue()


@pytest.mark.parametrize("show", [None, False])
def test_nothing_is_shown_without_a_terminal(tmp_path, monkeypatch, capsys, show):
    monkeypatch.setattr(progress, "PATIENCE", 0)
    READER.read(save(tmp_path, 5), show)
    assert capsys.readouterr() == ("", "")


def test_the_caller_decides_about_the_bar(tmp_path, monkeypatch):
    paths, screen = save(tmp_path, 5), watch(monkeypatch, 60)
    READER.read(paths, True)
    assert "Reading images" in screen.getvalue()
    screen = watch(monkeypatch, 0)
    READER.read(paths, False)
    assert screen.getvalue() == ""
