"""The check itself: it tells right from roughly right from wrong, in words."""

from __future__ import annotations

import pytest
import torch

from wrssl.api import DivergenceError, OptionError
from wrssl.hypergrad import (
    CheckResult,
    Estimate,
    check_head,
    check_one_step,
    compare,
    exact,
    stationary_point,
)
from wrssl.hypergrad.check import _evenly_spaced
from wrssl.hypergrad.forward import directional


@pytest.mark.parametrize("loss", ["ce", "mse", "kl"])
def test_the_exact_estimate_passes(head, loss):
    result = check_head(head(zloss=loss), indices=[0, 5, 29])
    assert result.passed
    assert result.relative_error < 1e-6
    assert result.cosine == pytest.approx(1.0)
    assert result.stationarity < 1e-10
    assert len(result.finite_difference) == 3
    assert "right" in result.verdict
    assert "relative error" in str(result)
    assert "stationarity" in str(result)


def test_a_float32_head_is_checked_in_float64(head_arguments, head_problem):
    single = (x.float() if x.is_floating_point() else x for x in head_arguments())
    assert check_head(head_problem(*single, ridge=0.1)).passed


def test_a_damped_gauss_newton_estimate_is_measured_against_the_same_truth(head):
    right, rough = check_head(head(zloss="kl")), check_head(head(zloss="kl", curvature="gauss-newton", damping=0.5))
    torch.testing.assert_close(right.finite_difference, rough.finite_difference)
    assert rough.relative_error > 0.01
    assert not rough.passed


def test_the_estimators_of_training_are_roughly_right(head):
    result = check_head(head(), "neumann", at="start", lookahead=3, terms=5)
    assert not result.passed
    assert 0.5 < result.cosine < 1.0
    assert result.stationarity > 1e-3
    assert result.largest_eigenvalue > 0
    assert "largest curvature" in str(result)


def test_a_wrong_sign_is_called_wrong(head):
    result = check_head(head(), lambda matvec, b: -exact(matvec, b))
    assert result.cosine == pytest.approx(-1.0)
    assert "wrong way" in result.verdict


def test_verdicts():
    truth = torch.tensor([1.0, 0.0])
    assert "size is off" in compare(3.0 * truth, truth).verdict
    assert "roughly right" in compare(torch.tensor([1.0, 1.0]), truth).verdict
    assert compare(truth, truth).passed


@pytest.mark.parametrize(
    ("cosine", "words"),
    [(0.99, "size is off"), (0.91, "size is off"), (0.89, "roughly"), (0.01, "roughly"), (-0.01, "wrong way")],
)
def test_the_verdict_follows_the_angle(cosine, words):
    estimate = torch.tensor([cosine, (1 - cosine**2) ** 0.5], dtype=torch.float64)
    result = compare(5.0 * estimate, torch.tensor([2.0, 0.0], dtype=torch.float64))
    assert result.cosine == pytest.approx(cosine, abs=1e-12)
    assert words in result.verdict
    assert not result.passed


@pytest.mark.parametrize(
    ("rho", "hint"), [(None, ": use more solver"), (9e-4, ": use more solver"), (2e-3, "look-ahead")]
)
def test_the_hint_follows_the_stationarity(rho, hint):
    gradient = torch.tensor([1.0, 1.0], dtype=torch.float64)
    estimate = Estimate(gradient, None, None, None, None if rho is None else torch.tensor(rho))
    result = compare(estimate, torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert hint in result.verdict
    assert ("stationarity" in str(result)) == (rho is not None)
    assert "curvature" not in str(result)


def test_the_relative_error_decides():
    truth = torch.tensor([3.0, 4.0], dtype=torch.float64)
    near, far = compare(truth * (1 + 0.9e-4), truth), compare(truth * (1 + 1.1e-4), truth)
    assert near.relative_error == pytest.approx(0.9e-4)
    assert (near.passed, far.passed) == (True, False)
    assert compare(truth * 1.5, truth, tolerance=0.5).passed  # 0.5 exactly: up to the tolerance, which is included
    zero = torch.zeros(2, dtype=torch.float64)
    assert "nothing was tested" in compare(zero, zero).verdict
    assert "nothing was tested" not in compare(truth, zero).verdict
    assert "nothing was tested" not in compare(zero, truth).verdict
    assert compare(zero, truth).relative_error == 1.0
    assert compare(zero, truth).cosine == 0.0


def test_one_step_check_works_for_heads_too(head):
    result = check_one_step(head(), 1.0, indices=[1, 2, 3])
    assert result.relative_error < 1e-6
    assert result.passed


def test_one_step_check_in_float32(head_arguments, head_problem):
    single = (x.float() if x.is_floating_point() else x for x in head_arguments())
    assert check_one_step(head_problem(*single, ridge=0.1), 1.0, epsilon=0.3, tolerance=2e-2).passed


def test_options_that_do_not_go_together(head):
    with pytest.raises(OptionError, match="ridge"):
        check_head(head(ridge=0.0))
    with pytest.raises(OptionError, match="solution"):
        check_head(head(), at="end")


def test_a_problem_without_a_minimum_ends_with_a_sentence(head):
    with pytest.raises(DivergenceError, match="larger ridge"):
        stationary_point(head(zloss="entropy", coef=50.0, ridge=1e-9), iterations=3)
    with pytest.raises(DivergenceError, match="looser tolerance"):
        stationary_point(head(), tolerance=0.0, iterations=20)


def test_forward_mode():
    x, u = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
    assert directional(torch.square, x, u).tolist() == [2.0, -4.0]


@pytest.mark.parametrize(
    ("size", "chosen"), [(0, []), (1, [0]), (2, [0, 1]), (8, list(range(8))), (30, [0, 4, 8, 12, 17, 21, 25, 29])]
)
def test_eight_examples_are_spread_over_the_batch(size, chosen):
    assert _evenly_spaced(size) == chosen


def test_results_hold_a_tolerance_of_their_own_and_are_compared_as_objects():
    one, other = torch.ones(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    assert CheckResult(1.0, 0.9e-4, one, other).passed
    assert not CheckResult(1.0, 1.1e-4, one, other).passed
    for make in (lambda: compare(one, one), lambda: Estimate(one.clone(), None, None, None, None)):
        result = make()
        assert result == result
        assert result != make()
