"""What the host knows about weights: the numbers, and when it does not look."""

from __future__ import annotations

import math

import pytest
import torch

from wrssl.norm.counts import look
from wrssl.norm.moments import shares


@pytest.mark.parametrize(
    "w",
    [[1.0, 1.0, 0.5], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [5e-4, 6e-4], [4e-4, 5e-4], [1e20, 1e20], [0.2] * 7],
    ids=str,
)
@pytest.mark.parametrize("positions", [1, 2, 49])
def test_host_and_tensors_agree(w, positions):
    w = torch.tensor(w, dtype=torch.float64)
    counts, (share, usable) = look(w), shares(w, positions)
    assert (counts.values(positions) > 0) == bool(usable)
    if usable:
        assert counts.values(positions) == pytest.approx(positions / float(share.square().sum()), rel=1e-12)
        assert float(share.sum()) == pytest.approx(1, abs=1e-12)
    else:
        assert torch.equal(share, torch.zeros_like(share))
    assert w[counts.heaviest] == w.max()


def test_hand_computed_numbers():
    counts = look(torch.tensor([1.0, 2.0, 0.5]))
    assert (counts.lowest, counts.total, counts.squares, counts.heaviest) == (0.5, 3.5, 5.25, 1)
    assert counts.values(4) == pytest.approx(4 * 3.5**2 / 5.25)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none(bad):
    for w in ([bad, 1.0, 1.0], [1.0, bad, 1.0], [1.0, 1.0, bad]):
        assert look(torch.tensor(w)).values(4) == 0


def test_it_does_not_look_where_it_would_lose_something():
    assert look(torch.ones(3, requires_grad=True)) is None
    assert look(torch.ones(0)) is None
    assert look(torch.ones(3, 1)) is None
    assert look(torch.ones(3, device="meta")) is None
    torch.func.vmap(lambda w: _none(look(w)) or w)(torch.ones(2, 3))


def _none(value):
    assert value is None
