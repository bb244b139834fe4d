"""A member of weight 0 has no influence: by the loss, by batch statistics, or by an attack on another member."""

from __future__ import annotations

import pytest
import torch

import wrssl
from wrssl.evaluate import is_ood
from wrssl.registry import METHODS


@pytest.fixture(scope="module")
def scenario() -> wrssl.Scenario:
    return wrssl.load_scenario("digits", ood="patches", seed=0)


@pytest.mark.parametrize("method", [name for name in METHODS.names() if METHODS.get(name).uses_unlabeled])
def test_another_content_of_foreign_members_changes_nothing(scenario, method):
    truth = is_ood(scenario)
    noise = torch.rand(scenario.unlabeled.shape, generator=torch.Generator().manual_seed(1))
    foreign = truth.view(-1, *[1] * (scenario.unlabeled.dim() - 1))
    other = torch.where(foreign, noise.to(scenario.unlabeled.dtype), scenario.unlabeled)
    models = []
    for pool in (scenario.unlabeled, other):
        data = wrssl.Scenario(scenario.labeled, pool, scenario.validation, is_ood=truth, overlap="allow")
        models.append(wrssl.fit(data, method=method, weights="oracle", steps=5, threads=1, progress=False).model)
    for one, two in zip(*(m.state_dict().values() for m in models), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0)
