"""Interleaving, medians and spreads, with a clock that the test moves."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl_bench.timing import Effort, Pairs, geometric_mean, interleave, quartile_range, summary


class Clock:
    """Stands still unless an action takes its time."""

    def __init__(self):
        self.now, self.calls = 100.0, []

    def __call__(self):
        return self.now

    def action(self, name, durations):
        left = iter(durations)

        def act():
            self.calls.append(name)
            self.now += next(left)

        return act


def test_the_two_take_turns_and_blocks_are_means():
    clock = Clock()
    a, b = clock.action("a", [50, 1, 2, 3, 6, 6, 6]), clock.action("b", [70, 1, 1, 1, 2, 4, 6])
    pairs = interleave(a, b, blocks=2, length=3, warmup=1, clock=clock)
    assert clock.calls == ["a", "b", *"aaabbbaaabbb"]
    assert pairs == Pairs([2.0, 6.0], [1.0, 4.0])
    assert pairs.ratios() == [2.0, 1.5]


def test_a_step_that_is_dear_every_fifth_time_has_one_value():
    clock = Clock()
    a, b = clock.action("a", [1, 1, 1, 1, 6] * 4), clock.action("b", [1] * 20)
    figure = interleave(a, b, blocks=4, length=5, clock=clock).figure()
    assert (figure.median, figure.spread) == (2.0, 0.0)


def test_a_figure_is_the_ratio_of_the_medians_with_the_quartiles_of_the_pairs():
    a, b = [1.0, 3.0, 2.0, 9.0, 2.5], [1.0, 1.0, 2.0, 3.0, 5.0]
    figure = Pairs(a, b).figure()
    assert figure.median == 2.5 / 2.0
    low, high = np.quantile(np.divide(a, b), [0.25, 0.75])
    assert figure.spread == pytest.approx(high - low, rel=1e-12)
    assert figure.details == {"ms": 2500.0, "base_ms": 2000.0, "pairs": 5}


def test_spread_of_one_value_is_zero_and_of_many_that_of_numpy():
    assert quartile_range([4.2]) == 0.0
    values = np.random.default_rng(0).random(11).tolist()
    assert quartile_range(values) == pytest.approx(np.subtract(*np.quantile(values, [0.75, 0.25])), rel=1e-12)
    assert summary([3.0, 1.0, 2.0]).median == 2.0


def test_geometric_mean():
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0, rel=1e-15)
    assert geometric_mean([1.0, 8.0, 27.0]) == pytest.approx(6.0, rel=1e-15)


def test_there_are_always_two_repetitions():
    assert [Effort(share=share).times(40) for share in (0, 0.5, 1)] == [2, 20, 40]
