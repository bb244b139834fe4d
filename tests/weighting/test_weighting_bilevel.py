"""What wr-instance and wr-cluster share: Algorithm 2's options, their defaults, and the errors."""

from __future__ import annotations

import pytest

from wrssl.api import HypergradientRequest, OptionError
from wrssl.registry import WEIGHTINGS

BOTH = pytest.mark.parametrize("name", ["wr-instance", "wr-cluster"])


@BOTH
def test_defaults(name):
    weighting = WEIGHTINGS.create(name)
    assert weighting.request(0) == HypergradientRequest(
        scope="head", solver="neumann", P=5, J=3, alpha=None, curvature="gauss-newton", damping=0.0, mixed_at="end"
    )
    assert weighting.every == 5
    assert (weighting.descent.beta, weighting.descent.l1, weighting.descent.plain) == (0.1, 1e-7, False)
    if name == "wr-cluster":
        assert (weighting.K, weighting.embedding) == (20, "pca")


@BOTH
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("J", 1),
        ("P", 0),
        ("alpha", 0.25),
        ("solver", "cg"),
        ("solver", "exact"),
        ("scope", "network"),
        ("curvature", "exact"),
        ("damping", 0.5),
        ("mixed_at", "start"),
        ("outer_loss", "error"),
    ],
)
def test_each_option_reaches_the_request(name, option, value):
    request = WEIGHTINGS.create(name, {option: value}).request(0)
    assert request == HypergradientRequest(**{option: value})
    assert getattr(request, option) == value


@BOTH
def test_beta_l1_and_the_papers_plain_steps_reach_the_descent(name):
    descent = WEIGHTINGS.create(name, {"beta": 0.7, "l1": 0.2}).descent
    assert (descent.beta, descent.l1, descent.plain) == (0.7, 0.2, False)
    weighting = WEIGHTINGS.create(name, {"compat": "paper", "alpha": 0.003})
    assert weighting.descent.plain
    assert weighting.request(0).alpha == 0.003


@BOTH
@pytest.mark.parametrize(("every", "steps"), [(1, [0, 1, 2, 3, 4, 5, 6, 7]), (3, [0, 3, 6]), (5, [0, 5])])
def test_an_estimate_every_l_steps(name, every, steps):
    weighting = WEIGHTINGS.create(name, {"L": every})
    assert [t for t in range(8) if weighting.request(t) is not None] == steps


@BOTH
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"L": 0}, "L counts the steps"),
        ({"compat": "oliver"}, "compat must be None or 'paper', not 'oliver'"),
        ({"compat": "paper"}, "pass alpha"),
        ({"scope": "body"}, "scope must be one of head, network"),
        ({"curvature": "fisher"}, "curvature must be gauss-newton or exact"),
        ({"mixed_at": "middle"}, "mixed_at must be end or start"),
        ({"outer_loss": "auroc"}, "outer_loss must be one of ce, error"),
        ({"J": -1}, "cannot be negative"),
        ({"P": -1}, "cannot be negative"),
        ({"momentum": 0.9}, "has no option 'momentum'; its options are: .*J, P, L, beta, l1"),
    ],
)
def test_a_wrong_option_is_a_sentence(name, options, message):
    with pytest.raises(OptionError, match=message):
        WEIGHTINGS.create(name, options)


@BOTH
def test_an_unknown_solver_is_refused_before_anything_runs(name):
    """Like every other option: not in the first weight update, when the run directory is already written."""
    with pytest.raises(OptionError, match="neumann, cg, exact"):
        WEIGHTINGS.create(name, {"solver": "newton"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"K": 0}, "K counts clusters and must be at least 1, not 0"),
        ({"embedding": "vgg"}, "embedding must be one of pca, raw, features or an array, not 'vgg'"),
    ],
)
def test_a_wrong_cluster_option_is_a_sentence(options, message):
    with pytest.raises(OptionError, match=message):
        WEIGHTINGS.create("wr-cluster", options)
