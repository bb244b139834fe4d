"""The options of a hypergradient: the defaults of the paper, and a sentence for each value that does not exist."""

from __future__ import annotations

import math

import pytest

from wrssl.api import OptionError
from wrssl.hypergrad.options import HypergradientOptions


def test_the_defaults():
    options = HypergradientOptions()
    assert (options.scope, options.solver, options.P, options.J) == ("head", "neumann", 5, 3)
    assert (options.alpha, options.curvature, options.damping) == (None, "gauss-newton", 0.0)
    assert (options.mixed_at, options.outer) == ("end", "validation")


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
    options = HypergradientOptions(**good)
    assert {name: getattr(options, name) for name in good} == good


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
        HypergradientOptions(**bad)


def test_the_learning_rate_replaces_its_name_only():
    by_name = HypergradientOptions(alpha="lr", P=2).with_rate(0.05)
    assert (by_name.alpha, by_name.P) == (0.05, 2)
    for options in (HypergradientOptions(), HypergradientOptions(alpha=0.3)):
        assert options.with_rate(0.05) is options
