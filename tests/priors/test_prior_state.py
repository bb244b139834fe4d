"""A prior goes into tensors and comes back as it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from wrssl.errors import DataError
from wrssl.priors import Prior, fit_prior
from wrssl.priors.fit import no_conclusion

KINDS = ("linear", "neighbours")


@pytest.fixture(params=["fitted", "too few rows"])
def prior(request, normal) -> Prior:
    if request.param == "too few rows":
        return no_conclusion(7, KINDS)
    known, pool = torch.from_numpy(normal(40, 3, 1)), torch.from_numpy(normal(70, 3, 2))
    pool[::2] += 1
    return fit_prior(known, np.arange(40) % 2, pool, 0, KINDS)


def assert_equal(one: Prior, other: Prior) -> None:
    for name in ("scores", "known"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert list(one.shares.items()) == list(other.shares.items())
    assert one.log_loss == other.log_loss
    for rows in (slice(None), slice(1, 4), np.array([5, 0])):
        np.testing.assert_array_equal(one.weight(rows), other.weight(rows))
        np.testing.assert_array_equal(one.p(rows), other.p(rows))
        np.testing.assert_array_equal(one.ood_score(rows), other.ood_score(rows))
    beyond = np.linspace(-5, 5, 101)
    np.testing.assert_array_equal(one.curve(beyond), other.curve(beyond))


def test_there_and_back(prior):
    assert_equal(Prior.from_state(prior.state_dict(), KINDS), prior)


def test_through_a_file(prior, tmp_path):
    save_file(prior.state_dict(), tmp_path / "state.safetensors")
    assert_equal(Prior.from_state(load_file(tmp_path / "state.safetensors"), KINDS), prior)


def test_the_state_is_tensors_with_names_of_their_own(prior):
    state = prior.state_dict()
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    assert all(name.startswith("prior ") for name in state), "a weighting has entries of its own beside them"


def test_the_names_are_those_of_version_0_1_0(prior):
    """A training of that version may be resumed."""
    assert set(prior.state_dict()) == {f"prior {name}" for name in ("numbers", "scores", "known", "nodes", "values")}


def test_the_comparison_is_handed_over(prior):
    """It is not among the tensors; a weighting that is resumed has fitted it again."""
    assert Prior.from_state(prior.state_dict(), KINDS).comparison is None
    assert Prior.from_state(prior.state_dict(), KINDS, prior.comparison).comparison is prior.comparison


def test_another_number_of_kinds_is_a_sentence(prior):
    with pytest.raises(DataError, match=r"has 2 kinds, but the options name 1; resume it with the same kinds\.$"):
        Prior.from_state(prior.state_dict(), ("linear",))
