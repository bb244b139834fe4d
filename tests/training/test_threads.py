"""How many threads a training takes, and that asking leaves no trace."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import wrssl
from wrssl.api import OptionError
from wrssl.config import FitConfig
from wrssl.training.effort import WORTHWHILE, choose_threads, flops, use_threads


@pytest.fixture
def four(monkeypatch):
    """A machine on which torch may use four threads; none of them is started."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)


@pytest.fixture
def small():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 2))


@pytest.fixture
def large():
    return nn.Sequential(nn.Conv2d(16, 64, 3, padding=1), nn.Flatten(), nn.Linear(64 * 32 * 32, 2))


def test_a_small_network_takes_one_thread(four, small):
    assert choose_threads(None, small, torch.zeros(3, 8), 100) == 1


def test_a_large_network_takes_all_that_torch_may_use(four, large):
    example = torch.zeros(1, 16, 32, 32)
    per_image = flops(large, example)
    assert per_image == 2 * (16 * 64 * 9 * 32 * 32 + 64 * 32 * 32 * 2)
    assert choose_threads(None, large, example, int(WORTHWHILE / per_image) + 1) == 4
    assert choose_threads(None, large, example, int(WORTHWHILE / per_image)) == 1


def test_the_batch_of_the_example_does_not_count(four, large):
    assert choose_threads(None, large, torch.zeros(3, 16, 32, 32), 50) == 1


def test_where_torch_may_use_one_thread_nothing_is_counted(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    fails = nn.Linear(3, 2)  # on examples of another width: a pass through it is an error
    with pytest.raises(RuntimeError):
        flops(fails, torch.zeros(1, 8))
    assert choose_threads(None, fails, torch.zeros(1, 8), 10**6) == 1


@pytest.mark.parametrize("asked", [1, 3, 6])
def test_a_number_that_is_asked_for_is_taken(four, small, large, asked):
    assert choose_threads(asked, small, torch.zeros(1, 8), 100) == asked
    assert choose_threads(asked, large, torch.zeros(1, 16, 32, 32), 10**6) == asked


@pytest.mark.parametrize("asked", [0, -2])
def test_less_than_one_thread_is_refused_with_a_sentence(asked, moons):
    with pytest.raises(OptionError, match=f"threads must be a whole number of at least 1, not {asked}"):
        FitConfig(threads=asked)
    with pytest.raises(OptionError, match="threads"):
        wrssl.fit(moons, steps=1, threads=asked)


def test_counting_changes_neither_modes_nor_buffers(small, global_rng_untouched):
    """Flags layer by layer: a layer that was frozen stays frozen."""
    small[1].eval()
    flags, before = [m.training for m in small.modules()], copy.deepcopy(small.state_dict())
    assert flops(small, torch.ones(1, 8)) == 2 * (8 * 16 + 16 * 2)
    assert [m.training for m in small.modules()] == flags
    assert all(torch.equal(value, before[name]) for name, value in small.state_dict().items())
    assert all(p.grad is None for p in small.parameters())


def test_a_network_that_fails_leaves_its_modes(small):
    small[1].eval()
    with pytest.raises(RuntimeError):
        flops(small, torch.ones(1, 9))
    assert [m.training for m in small.modules()] == [True, True, False, True, True, True]


def test_the_context_gives_the_number_back():
    before = torch.get_num_threads()
    with use_threads(2):
        assert torch.get_num_threads() == 2
        with use_threads(1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before
    with pytest.raises(ZeroDivisionError), use_threads(2):
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_fit_says_how_many_threads_it_used_and_gives_them_back(moons):
    class Seen(wrssl.Callback):
        numbers: set[int] = set()  # noqa: RUF012

        def on_step(self, trainer, outcome):
            self.numbers.add(torch.get_num_threads())

    before = torch.get_num_threads()
    assert wrssl.fit(moons, steps=2, threads=1, callbacks=[Seen()]).config["threads"] == 1
    assert Seen.numbers == {1}
    assert wrssl.fit(moons, steps=2).config["threads"] <= before
    assert wrssl.fit(moons, steps=2, threads=2, callbacks=[Seen()]).config["threads"] == 2
    assert Seen.numbers == {1, 2}
    assert torch.get_num_threads() == before
