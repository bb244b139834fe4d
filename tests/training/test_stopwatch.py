"""The time that steps take: their sum, and the median of the last ones."""

from __future__ import annotations

import math
import pickle

from wrssl.training.loop import RECENT, Stopwatch


def test_it_knows_sum_and_median():
    watch = Stopwatch()
    assert math.isnan(watch.median())
    for seconds in (1.0, 2.0, 30.0):
        watch.add(seconds)
    assert (watch.total, watch.median()) == (33.0, 2.0)


def test_memory_is_bounded_and_the_median_is_that_of_the_last_steps():
    watch = Stopwatch()
    sizes = []
    for seconds in (9.0, 1.0, 1.0):
        for _ in range(RECENT):
            watch.add(seconds)
        sizes.append(len(pickle.dumps(watch)))
    assert (watch.total, watch.median()) == (11.0 * RECENT, 1.0)
    assert len(set(sizes)) == 1
    for _ in range(RECENT // 2):
        watch.add(3.0)
    assert watch.median() == 2.0  # between as many steps of 1 s as of 3 s


def test_a_run_that_goes_on_keeps_its_time():
    watch, again = Stopwatch(), Stopwatch()
    for seconds in (1.0, 3.0, 2.0):
        watch.add(seconds)
    again.add(77.0)
    again.load(watch.to_json())
    assert (again.total, again.median()) == (6.0, 2.0)
    again.load({"total": 0.0, "median": None})
    assert math.isnan(again.median())
