from __future__ import annotations

import pytest

from wrssl_bench.timing import Effort


@pytest.fixture(scope="session")
def tiny():
    """The least work that still runs every line."""
    return Effort(
        share=0, warmup=1, batch=8, pool=120, updates=1, stretch=2, small=300, large=2_000, steps=3, pictures=2,
        photos=44,
    )  # fmt: skip
