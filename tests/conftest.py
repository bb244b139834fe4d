"""Shared by all tests: one thread, a private generator, and the check that nobody touches the global one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def global_rng_untouched():
    before = torch.get_rng_state()
    yield
    assert torch.equal(before, torch.get_rng_state()), "the global generator was used"


def data_folder() -> Path | None:
    """Where the real image files are: $WRSSL_DATA, else ../shared/data beside the project."""
    places = [os.environ.get("WRSSL_DATA"), Path(__file__).resolve().parents[2] / "shared" / "data"]
    return next((Path(p) for p in places if p and Path(p).is_dir()), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if data_folder() is None:
        skip = pytest.mark.skip(reason="the image files are not here; set WRSSL_DATA to their folder")
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(skip)
