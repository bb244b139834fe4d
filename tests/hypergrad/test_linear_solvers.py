"""Check 3: the solvers agree with a dense solve; a diverging series is refused with a step that works."""

from __future__ import annotations

import functools
import itertools
import re

import pytest
import torch

from wrssl.api import DivergenceError, OptionError
from wrssl.hypergrad import SOLVERS, cg, exact, largest_eigenvalue, neumann
from wrssl.hypergrad.solvers import find_solver


@pytest.fixture
def system(randn):
    """A symmetric positive definite 12 × 12 system with eigenvalues 0.1 … 2, and its solution, shaped (3, 4)."""
    basis = torch.linalg.qr(randn(12, 12, seed=1))[0]
    matrix = basis @ torch.diag(torch.linspace(0.1, 2.0, 12, dtype=torch.float64)) @ basis.T
    b = randn(3, 4, seed=2)
    return (
        matrix,
        lambda u: (matrix @ u.reshape(-1)).reshape(u.shape),
        b,
        torch.linalg.solve(matrix, b.reshape(-1)).view(3, 4),
    )


def cosine(a, b):
    return float((a * b).sum() / a.norm() / b.norm())


@pytest.mark.parametrize(("name", "options"), [("exact", {}), ("cg", {}), ("neumann", {"terms": 2000})])
def test_every_solver_solves(system, name, options):
    _, matvec, b, x = system
    torch.testing.assert_close(SOLVERS.get(name)(matvec, b, **options), x, rtol=1e-9, atol=1e-9)


def test_neumann_approaches_the_solution_monotonically(system):
    _, matvec, b, x = system
    estimates = [neumann(matvec, b, terms=terms, alpha=0.5) for terms in range(0, 60, 3)]
    cosines, errors = [cosine(q, x) for q in estimates], [float((q - x).norm()) for q in estimates]
    assert cosines == sorted(cosines)
    assert errors == sorted(errors, reverse=True)


def test_neumann_is_the_written_series(system):
    matrix, matvec, b, _ = system
    alpha, factor = 0.7, torch.eye(12, dtype=torch.float64) - 0.7 * matrix
    series = alpha * sum(torch.linalg.matrix_power(factor, p) @ b.reshape(-1) for p in range(6))
    torch.testing.assert_close(neumann(matvec, b, terms=5, alpha=alpha).reshape(-1), series, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(neumann(matvec, b, terms=0, alpha=alpha), alpha * b)


def test_the_residuals_are_as_the_docstrings_say(system):
    """Neumann: (I − αH)^(P+1) b; CG: orthogonal to what was subtracted before; exact: none."""
    matrix, matvec, b, _ = system
    factor = torch.linalg.matrix_power(torch.eye(12, dtype=torch.float64) - 0.7 * matrix, 6)
    series = b - matvec(neumann(matvec, b, terms=5, alpha=0.7))
    torch.testing.assert_close(series.reshape(-1), factor @ b.reshape(-1), rtol=1e-11, atol=1e-12)
    steps = [cg(matvec, b, iterations=k) for k in range(6)]
    residual = b - matvec(steps[-1])
    for before, after in itertools.pairwise(steps):
        assert abs(float((residual * (after - before)).sum())) < 1e-12 * float((after - before).norm())
    assert float((b - matvec(exact(matvec, b))).norm()) < 1e-12


@pytest.mark.parametrize("alpha", [1.05, 3.0, 1e200])
def test_neumann_refuses_a_step_that_diverges_and_names_one_that_works(system, alpha):
    _, matvec, b, x = system  # 2/λ_max = 1
    with pytest.raises(DivergenceError, match="for example alpha = ") as caught:
        neumann(matvec, b, terms=40, alpha=alpha)
    suggested = float(re.search(r"for example alpha = ([\d.e+-]+)\.", str(caught.value)).group(1))
    assert suggested == pytest.approx(0.5, rel=0.02)
    assert cosine(neumann(matvec, b, terms=300, alpha=suggested), x) > 0.9999
    assert torch.isfinite(neumann(matvec, b, terms=3, alpha=1.05, check=False)).all()


@pytest.mark.parametrize("alpha", [0.5, 1.5])  # both below 2/λ_max: the negative eigenvalue alone makes it grow
def test_neumann_says_when_no_step_can_work(alpha):
    diagonal = torch.tensor([1.0, -0.5], dtype=torch.float64)
    with pytest.raises(DivergenceError, match="gauss-newton"):
        neumann(lambda u: diagonal * u, torch.ones(2, dtype=torch.float64), terms=20, alpha=alpha)


def test_a_single_term_that_grows_is_refused():
    b = torch.ones(2, dtype=torch.float64)
    with pytest.raises(DivergenceError, match="for example alpha = 1"):
        neumann(lambda u: u, b, terms=1, alpha=3.0)
    assert torch.equal(neumann(lambda u: u, b, terms=1, alpha=3.0, check=False), -3 * b)


def test_a_null_space_is_harmless(system, randn):
    n = randn(12, seed=5)
    n = n / n.norm()
    matrix = system[0] - torch.outer(system[0] @ n, n)
    matrix = matrix - torch.outer(n, n @ matrix)  # now matrix @ n = 0
    b = randn(12, seed=6)
    b = b - n * (n @ b)
    expected = torch.linalg.pinv(matrix, hermitian=True) @ b
    for solver, options in ((exact, {}), (cg, {}), (neumann, {"terms": 4000})):
        torch.testing.assert_close(solver(lambda u: matrix @ u, b, **options), expected, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(exact(lambda u: matrix @ u, b + n), expected, rtol=1e-8, atol=1e-8)


def test_a_part_in_the_null_space_is_no_growth(system, randn):
    """The part of b in the null space stays in every term; rounding sometimes lengthens it, which is no divergence."""
    n = randn(12, seed=5)
    n = n / n.norm()
    project = torch.eye(12, dtype=torch.float64) - torch.outer(n, n)
    matrix = (project @ system[0] @ project).float()
    b = n.float() + 0.1 * randn(12, seed=0).float()
    for terms in range(70, 170):  # where the other part has vanished
        assert torch.isfinite(neumann(lambda u: matrix @ u, b, terms=terms, alpha=0.5)).all()


def test_a_series_without_terms_is_alpha_times_the_right_hand_side(system):
    for value in (1.0, torch.inf):
        b = torch.full((3, 4), value, dtype=torch.float64)
        assert torch.equal(neumann(system[1], b, terms=0, alpha=0.5), 0.5 * b)


def test_cg_is_best_in_its_krylov_space(system):
    matrix, matvec, b, x = system

    def energy(y):
        e = (y - x).reshape(-1)
        return float(e @ matrix @ e)

    krylov = [b.reshape(-1)]
    for k in range(1, 6):
        basis = torch.linalg.qr(torch.stack(krylov, 1))[0]
        best = basis @ torch.linalg.solve(basis.T @ matrix @ basis, basis.T @ b.reshape(-1))
        torch.testing.assert_close(cg(matvec, b, iterations=k).reshape(-1), best, rtol=1e-9, atol=1e-9)
        assert energy(cg(matvec, b, iterations=k)) < energy(neumann(matvec, b, terms=k - 1, alpha=0.5))
        krylov.append(matrix @ krylov[-1])


def test_cg_stops_without_positive_curvature_and_at_the_tolerance():
    diagonal = torch.tensor([2.0, 1.0, -1.0], dtype=torch.float64)
    x = cg(lambda u: diagonal * u, torch.tensor([1.0, 1.0, 0.1], dtype=torch.float64))
    assert torch.isfinite(x).all()
    calls = []
    b = torch.ones(3, dtype=torch.float64)
    cg(lambda u: calls.append(1) or 4.0 * u, b)
    assert len(calls) <= 2
    assert torch.equal(cg(lambda u: u, torch.zeros(3)), torch.zeros(3))
    assert torch.equal(cg(lambda u: 4.0 * u, b, tolerance=1.0), torch.zeros_like(b))  # zero is within that tolerance


def test_by_hand():
    # H = diag(2, 4), b = (2, 4): x = (1, 1); Neumann with α = 1/4, P = 1: (1/4)[(2, 4) + (1, 0)] = (3/4, 1).
    diagonal, b = torch.tensor([2.0, 4.0]), torch.tensor([2.0, 4.0])
    torch.testing.assert_close(exact(lambda u: diagonal * u, b), torch.ones(2))
    torch.testing.assert_close(cg(lambda u: diagonal * u, b), torch.ones(2))
    torch.testing.assert_close(neumann(lambda u: diagonal * u, b, terms=1, alpha=0.25), torch.tensor([0.75, 1.0]))


def test_largest_eigenvalue_is_right_reproducible_and_can_be_warm_started(system):
    _, matvec, b, _ = system
    before = torch.get_rng_state()
    value, vector = largest_eigenvalue(matvec, b, iterations=300)
    assert float(value) == pytest.approx(2.0, rel=1e-9)
    torch.testing.assert_close(matvec(vector), 2.0 * vector, rtol=1e-6, atol=1e-6)
    assert torch.equal(largest_eigenvalue(matvec, b)[0], largest_eigenvalue(matvec, torch.zeros_like(b))[0])
    assert float(largest_eigenvalue(matvec, b, start=vector, iterations=1)[0]) == pytest.approx(2.0, rel=1e-9)
    assert torch.equal(before, torch.get_rng_state())
    lower = [float(largest_eigenvalue(matvec, b, iterations=k)[0]) for k in (1, 2, 5, 10)]
    assert lower == sorted(lower)
    assert lower[-1] <= 2.0 + 1e-12


def test_arguments_have_names_and_options_are_keyword_only(system):
    _, matvec, b, _ = system
    assert torch.equal(largest_eigenvalue(matvec=matvec, like=b)[0], largest_eigenvalue(matvec, b, iterations=10)[0])
    for function in (largest_eigenvalue, cg, neumann):
        with pytest.raises(TypeError, match="positional"):
            function(matvec, b, b)
    for solver in (neumann, cg, exact):
        assert torch.equal(solver(matvec=matvec, b=b), solver(matvec, b))


def test_no_curvature_at_all_stays_finite():
    b = torch.ones(4)
    for solver in (neumann, cg, exact):
        assert torch.isfinite(solver(torch.zeros_like, b)).all()


def test_a_solver_is_found_by_its_name_and_as_the_function_itself():
    for name, facts in (("neumann", {"series": True}), ("cg", {"iterative": True}), ("exact", {})):
        function = {"neumann": neumann, "cg": cg, "exact": exact}[name]
        assert find_solver(name) == (function, facts)
        assert find_solver(function) == (function, facts)
    unregistered = functools.partial(cg, iterations=2)
    assert find_solver(unregistered) == (unregistered, {})


def test_unknown_solver_names_the_known_ones():
    with pytest.raises(OptionError, match="neumann, cg, exact"):
        find_solver("lu")
