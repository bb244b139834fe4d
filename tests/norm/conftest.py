"""Weighted layers on both kinds of kernel."""

from __future__ import annotations

import pytest

from wrssl.norm import Weighted


@pytest.fixture(params=["native", "composed"])
def kernels(request, monkeypatch):
    """Run a test twice: with native kernels where they are possible, and without."""
    monkeypatch.setattr(Weighted, "native", request.param == "native")
    return request.param
