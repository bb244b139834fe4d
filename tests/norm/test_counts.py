"""Sums of weights as numbers on the host, and when they are not computed."""

from __future__ import annotations

import math

import pytest
import torch

from wrssl.norm import count_weights
from wrssl.norm.moments import shares


@pytest.mark.parametrize(
    "w",
    [[1.0, 1.0, 0.5], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [5e-4, 6e-4], [4e-4, 5e-4], [1e20, 1e20], [0.2] * 7],
    ids=str,
)
@pytest.mark.parametrize("positions", [1, 2, 49])
def test_host_and_tensors_agree(w, positions):
    w = torch.tensor(w, dtype=torch.float64)
    counts, (share, usable) = count_weights(w), shares(w, positions)
    assert (counts.values(positions) > 0) == bool(usable)
    if usable:
        assert counts.values(positions) == pytest.approx(positions / float(share.square().sum()), rel=1e-12)
        assert float(share.sum()) == pytest.approx(1, abs=1e-12)
    else:
        assert torch.equal(share, torch.zeros_like(share))
    if not w.any():
        assert all(torch.equal(counts.shares(dtype), share.to(dtype)) for dtype in (torch.float32, torch.float64))
    assert w[counts.heaviest] == w.max()


def test_hand_computed_numbers():
    counts = count_weights(torch.tensor([1.0, 2.0, 0.5]))
    assert (counts.lowest, counts.total, counts.squares, counts.heaviest) == (0.5, 3.5, 5.25, 1)
    assert counts.values(4) == pytest.approx(4 * 3.5**2 / 5.25)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none(bad):
    for w in ([bad, 1.0, 1.0], [1.0, bad, 1.0], [1.0, 1.0, bad]):
        assert count_weights(torch.tensor(w)).values(4) == 0


def test_nothing_is_counted_where_that_would_lose_a_derivative_or_wait():
    assert count_weights(torch.ones(3, requires_grad=True)) is None
    assert count_weights(torch.ones(0)) is None
    assert count_weights(torch.ones(3, 1)) is None
    assert count_weights(torch.ones(3, device="meta")) is None
    torch.func.vmap(lambda w: _none(count_weights(w)) or w)(torch.ones(2, 3))


def _none(value):
    assert value is None
