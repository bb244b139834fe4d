"""The parts that skip a step whose loss or gradient is not finite, count it, and never call such a network the best."""

from __future__ import annotations

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from wrssl.training.loop import Best, Tally
from wrssl.training.step import Outcome, StepGuard


def outcome(skipped):
    loss = torch.tensor(math.nan if skipped else 2.0)
    return Outcome(loss, loss, loss, torch.tensor(1.0), skipped=torch.tensor(float(skipped)))


def test_the_tally_counts_across_rows_and_across_a_resume():
    tally = Tally()
    for skipped in (1, 0, 1, 1):
        tally.add(outcome(skipped))
    assert tally.skipped() == (3, 2)
    assert tally.mean("loss") == 2.0
    following = tally.following()
    resumed = Tally()
    resumed.load(following.to_json())
    for later in (following, resumed):
        assert later.skipped() == (0, 2)
        later.add(outcome(1))
        assert later.skipped() == (1, 3)
        assert later.mean("loss") is None
        later.add(outcome(0))
        assert later.following().skipped() == (0, 0)


class Reads(TorchDispatchMode):
    """Counts how often the host asks for a value."""

    number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += "local_scalar_dense" in str(function)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("value", [1.0, math.nan])
def test_the_host_waits_for_nothing(value):
    p = torch.ones(3, requires_grad=True)
    guard = StepGuard(torch.optim.Adam([p], lr=0.1, fused=True), [torch.nn.BatchNorm1d(3)])
    p.grad = torch.full((3,), value)
    with Reads() as reads:
        guard.begin()
        broken = guard.step(torch.ones(()))
    assert reads.number == 0
    assert bool(broken) is math.isnan(value)


@pytest.mark.parametrize("make", [lambda p: torch.optim.Adam(p, fused=True), torch.optim.SGD], ids=["fused", "plain"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("gradient", "loss", "taken"), [(1.0, 1.0, True), (math.inf, 1.0, False), (1.0, math.inf, False)]
)
def test_loss_and_gradient_are_both_looked_at(make, dtype, gradient, loss, taken):
    p, unused = (torch.ones(3, requires_grad=True, dtype=dtype) for _ in range(2))
    p.grad = torch.tensor([0.5, gradient, 0.5], dtype=dtype)
    skipped = StepGuard(make([p, unused]), []).step(torch.tensor(loss))
    assert bool(skipped) is not taken
    assert bool((p != 1).all()) is taken


def test_a_gradient_whose_square_overflows_is_not_taken():
    """Adam would keep an infinite second moment, and never move that parameter again."""
    p = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([p], fused=True)
    p.grad = torch.full((3,), 1e20)
    assert bool(StepGuard(optimizer, []).step(torch.ones(())))
    p.grad = torch.ones(3)
    assert not bool(StepGuard(optimizer, []).step(torch.ones(())))
    assert bool((p < 1).all())


def test_a_network_with_invalid_predictions_is_never_the_best():
    best, model = Best(), torch.nn.Linear(1, 1)
    best.offer(1, 0.9, math.nan, model)
    assert not best.state
    best.offer(2, 0.5, 0.7, model)
    best.offer(3, 0.5, math.nan, model)
    assert best.step == 2
