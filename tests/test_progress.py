"""The one way to show progress: late, short, and on a terminal only."""

from __future__ import annotations

import io
import sys
import time
from types import SimpleNamespace

import pytest

from wrssl import progress


class Screen(io.StringIO):
    """Standard error; a terminal unless the test says otherwise."""

    terminal = True

    def isatty(self) -> bool:
        return self.terminal


def watch(monkeypatch, terminal: bool = True, patience: float | None = None) -> Screen:
    """Replaces standard error; in the test itself, as pytest replaces it again after the fixtures."""
    screen = Screen()
    screen.terminal = terminal
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    if patience is not None:
        monkeypatch.setattr(progress, "PATIENCE", patience)
    return screen


def slow_slices(monkeypatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))  # a second per look
    list(progress.slices(40, 1, "walking"))


@pytest.mark.parametrize(("size", "step"), [(0, 5), (1, 5), (10, 5), (11, 5), (3, 1)])
def test_slices_cover_everything_once_in_order(size, step):
    pieces = list(progress.slices(size, step, "walking"))
    assert [n for piece in pieces for n in range(size)[piece]] == list(range(size))
    assert all(0 < piece.stop - piece.start <= step for piece in pieces)


def test_slow_slices_say_how_far_they_are_at_growing_intervals(monkeypatch):
    screen = watch(monkeypatch)
    slow_slices(monkeypatch)
    assert screen.getvalue().splitlines() == [  # after 3, 7, 15 and 31 of 40 seconds
        "walking: 7 %, about 37 s left",
        "walking: 17 %, about 33 s left",
        "walking: 37 %, about 25 s left",
        "walking: 77 %, about 9 s left",
    ]


def test_slow_work_is_noted_once(monkeypatch):
    screen = watch(monkeypatch, patience=0.01)
    with progress.note("thinking"):
        time.sleep(0.2)
    assert screen.getvalue() == "thinking …\n"


def test_nothing_is_said_without_a_terminal(monkeypatch):
    screen = watch(monkeypatch, terminal=False, patience=0.01)
    with progress.note("thinking"):
        time.sleep(0.1)
    slow_slices(monkeypatch)
    assert screen.getvalue() == ""


def test_quick_work_says_nothing(monkeypatch):
    screen = watch(monkeypatch)
    list(progress.slices(1000, 1, "walking"))
    with progress.note("thinking"):
        pass
    with progress.bar("counting", 5) as tick:
        tick(5)
    assert screen.getvalue() == ""


def test_an_error_passes_and_ends_the_wait(monkeypatch):
    screen = watch(monkeypatch, patience=0.05)
    with pytest.raises(ZeroDivisionError), progress.note("dividing"):
        1 / 0  # noqa: B018
    time.sleep(0.15)
    assert screen.getvalue() == ""


def test_silence_holds_while_it_is_wanted(monkeypatch):
    screen = watch(monkeypatch)
    with progress.silent():
        progress.say("not shown")
        with progress.silent(False):
            progress.say("not shown either")
        assert not progress.is_watched(True)
    with progress.silent(False):
        progress.say("shown")
    progress.say("afterwards")
    assert screen.getvalue() == "shown\nafterwards\n"


@pytest.mark.parametrize(("unit", "expected"), [("items", "3/5"), ("bytes", "3/5 bytes"), ("share", "counting")])
def test_a_slow_count_has_a_bar(monkeypatch, unit, expected):
    screen = watch(monkeypatch, patience=0)
    with progress.bar("counting", 5, done=2, unit=unit) as tick:
        tick()
    assert "counting" in screen.getvalue()
    assert expected in screen.getvalue()


def test_a_bar_that_is_asked_for_is_there_at_once_and_tells_news(monkeypatch):
    screen = watch(monkeypatch)
    with progress.bar("training", 5, show=True) as tick:
        assert "0/5" in screen.getvalue()
        tick(1, lambda: pytest.fail("too early to compute it again"))
        tick(1, "loss 0.25", title="the next part")
    assert "2/5" in screen.getvalue()
    assert "loss 0.25" in screen.getvalue()
    assert "the next part" in screen.getvalue()


def test_no_bar_without_a_terminal_or_where_it_is_not_wanted(monkeypatch):
    screen = watch(monkeypatch, terminal=False, patience=0)
    with progress.bar("counting", 5) as tick:
        tick()
    screen.terminal = True
    with progress.bar("counting", 5, show=False) as tick:
        tick()
    assert screen.getvalue() == ""
