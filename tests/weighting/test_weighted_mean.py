"""The one place where weights meet losses."""

from __future__ import annotations

import pytest
import torch

from wrssl.api import DataError
from wrssl.weighting.weighted_mean import weighted_mean

R = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64)
W = torch.tensor([1.0, 0.5, 0.0, 0.25], dtype=torch.float64)


def test_by_hand():
    assert weighted_mean(R, W).item() == (1 + 1 + 0 + 2) / 4


def test_it_divides_by_the_batch_and_not_by_the_weights():
    """N1: smaller weights make a smaller term, and no weight at all none."""
    assert weighted_mean(R, 0.5 * W).item() == 0.5 * weighted_mean(R, W).item()
    assert weighted_mean(R, torch.zeros_like(R)).item() == 0
    assert weighted_mean(R, torch.ones_like(R)).item() == R.mean().item()


def test_permuting_the_weights_changes_it_and_permuting_both_does_not():
    order = torch.tensor([3, 1, 0, 2])
    assert weighted_mean(R, W[order]).item() != weighted_mean(R, W).item()
    assert weighted_mean(R[order], W[order]).item() == weighted_mean(R, W).item()


def test_gradients():
    r, w = R.clone().requires_grad_(), W.clone().requires_grad_()
    weighted_mean(r, w).backward()
    torch.testing.assert_close(r.grad, W / 4)
    torch.testing.assert_close(w.grad, R / 4)


@pytest.mark.parametrize(
    ("losses", "weights"),
    [
        ((4,), (4, 1)),
        ((4, 1), (4,)),
        ((4, 1), (4, 1)),
        ((4,), (1,)),
        ((4,), ()),
        ((), ()),
        ((4,), (1, 4)),
        ((4,), (3,)),
    ],
)
def test_every_shape_that_could_broadcast_is_refused(losses, weights):
    with pytest.raises(DataError, match=r"must both have shape \(B,\).*flatten them"):
        weighted_mean(torch.ones(losses), torch.ones(weights))
