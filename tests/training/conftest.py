from __future__ import annotations

import pytest

import wrssl


@pytest.fixture(scope="session")
def digits():
    return wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)


@pytest.fixture(scope="session")
def moons():
    return wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
