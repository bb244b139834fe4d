"""A weighting's request: the paper's defaults, an error for each value that does not exist, the solver's options."""

from __future__ import annotations

import math

import pytest

from wrssl.api import HypergradientRequest, OptionError
from wrssl.hypergrad import SOLVERS, check_request, solver_options, with_rate
from wrssl.registry import register_solver


def test_the_defaults():
    request = check_request(HypergradientRequest())
    assert (request.scope, request.solver, request.P, request.J) == ("head", "neumann", 5, 3)
    assert (request.alpha, request.curvature, request.damping) == (None, "gauss-newton", 0.0)
    assert (request.mixed_at, request.outer, request.outer_loss) == ("end", "validation", "ce")


@pytest.mark.parametrize(
    "good",
    [
        {"scope": "network", "solver": "cg", "curvature": "exact", "mixed_at": "start", "outer": "labeled"},
        {"P": 0, "J": 0, "damping": 0.0, "alpha": 0.1},
        {"P": 1, "J": 1, "damping": 1e6, "alpha": "lr"},
    ],
    ids=str,
)
def test_values_that_exist_are_kept(good):
    request = HypergradientRequest(**good)
    assert check_request(request) is request
    assert {name: getattr(request, name) for name in good} == good


@pytest.mark.parametrize(
    "bad",
    [
        {"scope": "body"}, {"scope": "Head"}, {"solver": "lu"}, {"curvature": "fisher"}, {"curvature": "a"},
        {"mixed_at": "middle"}, {"mixed_at": "a"}, {"outer": "test"}, {"outer": "a"},
        {"alpha": "fast"}, {"alpha": "a"}, {"alpha": "z"},
        {"damping": -1e-9}, {"damping": math.inf}, {"damping": math.nan},
        {"P": -1}, {"J": -1}, {"P": -3, "J": -3},
    ],
    ids=str,
)  # fmt: skip
def test_values_that_do_not_exist_are_refused(bad):
    with pytest.raises(OptionError, match="|".join(bad)):
        check_request(HypergradientRequest(**bad))


def test_the_learning_rate_replaces_its_name_only():
    by_name = with_rate(HypergradientRequest(alpha="lr", P=2), 0.05)
    assert (by_name.alpha, by_name.P) == (0.05, 2)
    for request in (HypergradientRequest(), HypergradientRequest(alpha=0.3)):
        assert with_rate(request, 0.05) is request


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ({}, {"terms": 5, "check": False}),
        ({"P": 2, "alpha": 0.1}, {"terms": 2, "check": True}),
        ({"solver": "cg", "P": 7, "alpha": 0.1}, {"iterations": 7, "tolerance": 1e-3}),
        ({"solver": "exact"}, {}),
    ],
    ids=str,
)
def test_the_options_of_a_solver(values, options):
    assert solver_options(HypergradientRequest(**values)) == options


@pytest.mark.parametrize(
    ("facts", "options"),
    [
        ({}, {}),
        ({"series": True}, {"terms": 4, "check": True}),
        ({"iterative": True}, {"iterations": 4, "tolerance": 1e-3}),
        ({"series": False, "iterative": False}, {}),
    ],
    ids=str,
)
def test_the_options_of_a_solver_from_outside_follow_from_its_facts(facts, options):
    with SOLVERS.isolated():

        @register_solver("mine", **facts)
        def mine(matvec, b, **given):
            return b

        request = check_request(HypergradientRequest(solver="mine", P=4, alpha=0.2))
        assert solver_options(request) == options
    with pytest.raises(OptionError, match="There is no solver 'mine'"):
        check_request(request)
