"""Newton's method with step halving, on functions whose minimum is known."""

from __future__ import annotations

import pytest
import torch

from wrssl.api import DivergenceError
from wrssl.hypergrad import stationary_point
from wrssl.hypergrad.check import _halved


class Quadratic:
    """``½ Σ_i a_i (θ_i − c_i)²``."""

    def __init__(self, a, c):
        self.a, self.c = (torch.tensor(x, dtype=torch.float64) for x in (a, c))

    def start(self):
        return torch.zeros_like(self.c)

    def train_loss(self, theta):
        return 0.5 * (self.a * (theta - self.c).square()).sum()

    def train_gradient(self, theta):
        return self.a * (theta - self.c)

    def curvature(self, theta):
        return lambda u: self.a * u


class Cosine(Quadratic):
    """``Σ_i cos θ_i``: concave near 0, with minima at ±π."""

    def train_loss(self, theta):
        return theta.cos().sum()

    def train_gradient(self, theta):
        return -theta.sin()

    def curvature(self, theta):
        return lambda u: -theta.cos() * u


def test_a_quadratic_takes_one_step():
    problem = Quadratic([1.0, 20.0, 3e-3], [2.0, -1.0, 5.0])
    torch.testing.assert_close(stationary_point(problem, iterations=2), problem.c, rtol=1e-12, atol=0)
    with pytest.raises(DivergenceError, match="within 1 Newton steps"):
        stationary_point(problem, iterations=1)  # the step is made, but its gradient was not compared
    assert stationary_point(problem, iterations=1, theta=problem.c) is problem.c


def test_a_direction_without_curvature_or_slope_stays_as_it_is():
    problem = Quadratic([1.0, 0.0], [2.0, 7.0])
    torch.testing.assert_close(stationary_point(problem), torch.tensor([2.0, 0.0], dtype=torch.float64))


def test_it_goes_downhill_where_the_function_is_concave():
    theta = stationary_point(Cosine([1.0, 1.0], [0.0, 0.0]), theta=torch.tensor([0.5, -0.7], dtype=torch.float64))
    torch.testing.assert_close(theta.cos(), -torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize(("tolerance", "ends"), [(0.9e-3, False), (1.1e-3, True)])
@pytest.mark.parametrize("size", [0.5, 40.0])
def test_the_tolerance_is_relative_for_large_parameters_only(tolerance, ends, size):
    problem = Quadratic([1.0], [size])
    theta = problem.c + 1e-3 * max(1.0, size)
    assert (stationary_point(problem, theta=theta, tolerance=tolerance) is theta) == ends


@pytest.mark.parametrize(("move", "scale"), [(1.0, 1.0), (1.9995, 1.0), (1.9999, 0.5), (3.9999, 0.25), (7.0, 0.25)])
def test_the_longest_step_that_lowers_the_loss_enough(move, scale):
    """From θ = 1 on θ², with slope 2: a step s must lower the loss by 1e-4 · 2s; 1.9999 lowers it by 2e-4 only."""
    problem, move = Quadratic([2.0], [0.0]), torch.tensor([move], dtype=torch.float64)
    theta = torch.ones(1, dtype=torch.float64)
    moved, gradient = _halved(problem, theta, problem.train_gradient(theta), move)
    torch.testing.assert_close(moved, theta - scale * move, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(gradient, 2 * moved, rtol=1e-12, atol=1e-15)


def test_a_step_uphill_is_never_made():
    problem, theta = Quadratic([2.0], [0.0]), torch.ones(1, dtype=torch.float64)
    with pytest.raises(DivergenceError, match="stuck"):
        _halved(problem, theta, problem.train_gradient(theta), -torch.ones(1, dtype=torch.float64))
