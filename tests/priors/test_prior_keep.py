"""A prior goes into tensors and comes back as it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from wrssl.priors import Prior, fit_prior
from wrssl.priors.fit import ignorance
from wrssl.priors.keep import from_state, to_state

KINDS = ("linear", "neighbours")


@pytest.fixture(params=["fitted", "ignorant"])
def prior(request, normal) -> Prior:
    if request.param == "ignorant":
        return ignorance(7, KINDS)
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
    assert_equal(from_state(to_state(prior), KINDS), prior)


def test_through_a_file(prior, tmp_path):
    save_file(to_state(prior), tmp_path / "state.safetensors")
    assert_equal(from_state(load_file(tmp_path / "state.safetensors"), KINDS), prior)


def test_the_state_is_tensors_with_names_of_their_own(prior):
    state = to_state(prior)
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    assert all(name.startswith("prior ") for name in state), "a weighting has entries of its own beside them"


def test_other_kinds_than_before_are_noticed(prior):
    with pytest.raises(ValueError, match="zip"):
        from_state(to_state(prior), ("linear",))
