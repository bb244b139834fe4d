"""Weighted layers on both kinds of kernel."""

from __future__ import annotations

import pytest

from wrssl.norm.native import native_kernels


@pytest.fixture(params=["native", "composed"])
def kernels(request):
    """Run a test twice: with native kernels where they are possible, and without."""
    with native_kernels(request.param == "native"):
        yield request.param
