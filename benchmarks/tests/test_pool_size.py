"""The arithmetic of the memory figures, and the process that measures them."""

from __future__ import annotations

import json

import pytest

from wrssl.errors import WRSSLError
from wrssl_bench import pool_size
from wrssl_bench.timing import Effort, output_of

MIB = 2**20


@pytest.fixture
def measured(monkeypatch):
    """Lets the probes report these numbers."""

    def report(large, small):
        keys = ("data", "start", "peak", "end")
        runs = tuple([dict(zip(keys, numbers, strict=True))] for numbers in (large, small))
        monkeypatch.setattr(pool_size, "_probes", lambda effort: runs)

    return report


def test_growth_is_peak_minus_start(measured):
    measured((0, 500 * MIB, 512 * MIB, 0), (0, 100 * MIB, 108 * MIB, 0))
    assert pool_size.step_memory(Effort()).median == 1.5


def test_tiny_growth_counts_as_the_floor(measured):
    measured((0, 500 * MIB, 500 * MIB, 0), (0, 100 * MIB, 100 * MIB + 4096, 0))
    assert pool_size.step_memory(Effort()).median == 1.0
    measured((0, 500 * MIB, 510 * MIB, 0), (0, 100 * MIB, 100 * MIB, 0))
    assert pool_size.step_memory(Effort()).median == 10.0


def test_bytes_beyond_the_data(measured):
    measured((8_000_000, 0, 0, 98_000_000), (8_000, 0, 0, 80_008_000))
    found = pool_size.bytes_per_member(Effort(small=1_000, large=1_001_000))
    assert found.median == pytest.approx(10.0, rel=1e-12)


@pytest.mark.skipif(not pool_size.can_be_measured(), reason="the system does not tell the peak of a process")
def test_what_the_process_prints(capsys):
    pool_size.main(["300", "2", "8"])
    said = json.loads(capsys.readouterr().out)
    assert said["data"] == 300 * 8
    assert 0 < said["start"] <= said["peak"]
    assert 0 < said["end"] <= said["peak"]


def test_a_process_that_fails_is_one_sentence():
    with pytest.raises(WRSSLError, match="code 3 and said: no room"):
        output_of("-c", "import sys; print('no room', file=sys.stderr); sys.exit(3)")
