"""The series of the paper's published code: it is the written one, and points the other way."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from wrssl.api import HypergradientRequest
from wrssl.hypergrad import (
    SOLVERS,
    HeadProblem,
    HeadRows,
    check_request,
    implicit_hypergradient,
    largest_eigenvalue,
    neumann,
    safe_step,
    solver_options,
    stationary_point,
)
from wrssl_reproduction.published_code import neumann_published


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(a, b):
    return float((a * b).sum() / a.norm() / b.norm())


@pytest.fixture
def system():
    """A symmetric positive definite 12 × 12 system with eigenvalues 0.1 … 2, and its solution, shaped (3, 4)."""
    basis = torch.linalg.qr(normal(12, 12, seed=1))[0]
    matrix = basis @ torch.diag(torch.linspace(0.1, 2.0, 12, dtype=torch.float64)) @ basis.T
    b = normal(3, 4, seed=2)
    x = torch.linalg.solve(matrix, b.reshape(-1)).view(3, 4)
    return matrix, lambda u: (matrix @ u.reshape(-1)).reshape(u.shape), b, x


@pytest.fixture
def problem():
    """A last layer with 5 inputs and 3 classes, trained to its minimum."""
    C, d, n_l, n_u, n_v = 3, 5, 24, 30, 21
    W, b = 0.5 * normal(C, d, seed=1), 0.5 * normal(C, seed=2)
    h_l, h_u, h_v = (normal(n, d, seed=3 + i) for i, n in enumerate((n_l, n_u, n_v)))
    w = torch.rand(n_u, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    labeled, validation = HeadRows(h_l, torch.arange(n_l) % C), HeadRows(h_v, torch.arange(n_v) % C)
    unlabeled = HeadRows(h_u, normal(n_u, C, seed=6).softmax(1))
    head = HeadProblem(W, b, labeled, unlabeled, validation, w, ridge=0.1)
    return head.at(stationary_point(head))


def test_it_is_the_written_series_and_points_the_other_way(system):
    matrix, matvec, b, x = system
    factor = torch.eye(12, dtype=torch.float64) - 0.7 * matrix
    series = b.reshape(-1) - sum(torch.linalg.matrix_power(factor, p) @ b.reshape(-1) for p in range(1, 6))
    published = neumann_published(matvec, b, terms=5, alpha=0.7)
    torch.testing.assert_close(published.reshape(-1), series, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(published + neumann(matvec, b, terms=5, alpha=0.7) / 0.7, 2 * b)
    torch.testing.assert_close(neumann_published(matvec, b, terms=1, alpha=0.7), 0.7 * matvec(b))
    small = neumann_published(matvec, b, terms=5, alpha=3e-3)  # the learning rate, as in that code
    assert cosine(small, neumann(matvec, b, terms=5, alpha=3e-3)) < -0.999
    assert cosine(small, x) < 0


def test_without_a_step_it_takes_one_over_the_largest_eigenvalue(system):
    _, matvec, b, _ = system
    alpha = safe_step(largest_eigenvalue(matvec, b, iterations=20)[0])
    assert torch.equal(neumann_published(matvec, b), neumann_published(matvec, b, terms=5, alpha=alpha))
    assert torch.equal(neumann_published(matvec=matvec, b=b), neumann_published(matvec, b))
    assert torch.isfinite(neumann_published(torch.zeros_like, b)).all()
    with pytest.raises(TypeError, match="positional"):
        neumann_published(matvec, b, 5)


def test_it_climbs(problem):
    """A small step along minus its estimate raises the validation loss of the head that is trained again."""
    truth = implicit_hypergradient(problem, "exact").gradient
    published = implicit_hypergradient(problem, "neumann-published", terms=5, step=1e-3).gradient
    right = implicit_hypergradient(problem, "neumann", terms=5, step=1e-3).gradient
    similarity = [
        F.cosine_similarity(*pair, dim=0) for pair in ((published, truth), (right, truth), (published, right))
    ]
    assert similarity[0] < -0.3
    assert similarity[1] > 0.3
    assert similarity[2] < -0.999


def test_a_request_can_name_it():
    assert SOLVERS.get("neumann-published") is neumann_published
    request = check_request(HypergradientRequest(solver="neumann-published", alpha="lr"))
    assert solver_options(request) == {"terms": 5, "check": True}
