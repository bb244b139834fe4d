"""Lines for a person who waits: late, few, and only where there is a person."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace

import pytest

from wrssl.data import patience
from wrssl.data.patience import announced, walk


@pytest.fixture
def screen(request, monkeypatch):
    """Standard error; a terminal unless the test says otherwise."""
    stream = io.StringIO()
    stream.isatty = lambda: getattr(request, "param", True)
    monkeypatch.setattr(patience, "sys", SimpleNamespace(stderr=stream))
    return stream


no_terminal = pytest.mark.parametrize("screen", [False], indirect=True)


def slow_walk(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: next(clock)))  # a second per look
    list(walk(40, 1, "walking"))


@pytest.mark.parametrize(("size", "step"), [(0, 5), (1, 5), (10, 5), (11, 5), (3, 1)])
def test_a_walk_covers_everything_once_in_order(size, step):
    pieces = list(walk(size, step, "walking"))
    assert [n for piece in pieces for n in range(size)[piece]] == list(range(size))
    assert all(0 < piece.stop - piece.start <= step for piece in pieces)


def test_a_slow_walk_says_how_far_it_is_at_growing_intervals(screen, monkeypatch):
    slow_walk(monkeypatch)
    assert screen.getvalue().splitlines() == [  # after 3, 7, 15 and 31 of 40 seconds
        "walking: 7 %, about 37 s left",
        "walking: 17 %, about 33 s left",
        "walking: 37 %, about 25 s left",
        "walking: 77 %, about 9 s left",
    ]


def test_slow_work_is_announced_once(screen, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE", 0.01)
    with announced("thinking"):
        time.sleep(0.2)
    assert screen.getvalue() == "thinking …\n"


@no_terminal
def test_nobody_is_told_where_nobody_watches(screen, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE", 0.01)
    with announced("thinking"):
        time.sleep(0.1)
    slow_walk(monkeypatch)
    assert screen.getvalue() == ""


def test_quick_work_says_nothing(screen):
    list(walk(1000, 1, "walking"))
    with announced("thinking"):
        pass
    assert screen.getvalue() == ""


def test_an_error_passes_and_ends_the_wait(screen, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE", 0.05)
    with pytest.raises(ZeroDivisionError), announced("dividing"):
        1 / 0  # noqa: B018
    time.sleep(0.15)
    assert screen.getvalue() == ""


def test_silence_is_kept_while_somebody_wants_it(screen):
    with patience.silence(True):
        patience._say("not heard")
    with patience.silence(False):
        patience._say("heard")
    patience._say("afterwards")
    assert screen.getvalue() == "heard\nafterwards\n"
