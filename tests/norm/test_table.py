"""The loops over tables compute what the formulas say, and what the composed form and autograd give."""

from __future__ import annotations

import pytest
import torch

from wrssl.norm.composed import standardize
from wrssl.norm.moments import moments
from wrssl.norm.table import Weighing, table_backward, table_forward

N, C, EPS, HEAVIEST = 7, 5, 1e-3, 2
OMEGA = torch.tensor([0.1, 0.0, 0.4, 0.05, 0.2, 0.15, 0.1], dtype=torch.float64)
HOW = Weighing(OMEGA, HEAVIEST, EPS)


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture(params=[True, False], ids=["affine", "plain"])
def parameters(request):
    return (doubles(C, seed=1), doubles(C, seed=2)) if request.param else (None, None)


def test_forward(parameters):
    x = 3 * doubles(N, C, seed=3) + 5
    y, kept = table_forward(x, *parameters, HOW)
    torch.testing.assert_close(kept.mean, OMEGA @ x, atol=1e-13, rtol=1e-13)
    torch.testing.assert_close(kept.variance, OMEGA @ (x - OMEGA @ x).square(), atol=1e-13, rtol=1e-12)
    expected = standardize(x, *parameters, *moments(x, OMEGA), EPS)
    torch.testing.assert_close(y, expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("needs_x", [True, False])
def test_backward_is_what_autograd_says(parameters, needs_x):
    x, g = (3 * doubles(N, C, seed=3) + 5).requires_grad_(), doubles(N, C, seed=4)
    given = [torch.ones(C).double() if parameters[0] is None else parameters[0].clone(), torch.zeros(C).double()]
    own = [p.requires_grad_() for p in given]
    y = standardize(x, *own, *moments(x, OMEGA), EPS)
    dx, d_gamma, d_beta = torch.autograd.grad(y, [x, *own], g)
    gamma = None if parameters[0] is None else parameters[0].detach()
    _, kept = table_forward(x.detach(), gamma, None, HOW)
    found, G2, G1 = table_backward(kept, g, needs_x)
    torch.testing.assert_close(G2, d_gamma, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(G1, d_beta, atol=1e-12, rtol=1e-12)
    if needs_x:
        torch.testing.assert_close(found, dx, atol=1e-12, rtol=1e-12)
    else:
        assert found is None


def test_far_from_zero_in_single_precision():
    x = doubles(N, C, seed=3)
    far, g = (x + 1e4).float(), doubles(N, C, seed=4)
    exact = far.double()
    args = [(exact, OMEGA, g), (far, OMEGA.float(), g.float())]
    results = []
    for values, omega, grad in args:
        y, kept = table_forward(values, None, None, Weighing(omega, HEAVIEST, EPS))
        results.append((y.double(), table_backward(kept, grad, True)[0].double()))
    (y, dx), (y32, dx32) = results
    torch.testing.assert_close(y32, y, atol=1e-6, rtol=0)
    # Here the mean has been rounded, by 1e4 · 2^-24 ≈ 6e-4 at most.
    torch.testing.assert_close(dx32, dx, atol=5e-3, rtol=0)


@pytest.mark.parametrize("where", ["x", "gradient"])
def test_nan_stays_in_its_channel(where):
    x, g = doubles(N, C, seed=3), doubles(N, C, seed=4)
    (x if where == "x" else g)[3, 1] = torch.nan
    y, kept = table_forward(x, None, None, HOW)
    dx, _, G1 = table_backward(kept, g, True)
    others = [c for c in range(C) if c != 1]
    assert y[:, others].isfinite().all()
    assert dx[:, others].isfinite().all()
    assert dx[OMEGA > 0, 1].isnan().all()
    assert y[:, 1].isnan().all() if where == "x" else G1[1].isnan()
