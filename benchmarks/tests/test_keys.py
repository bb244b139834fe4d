"""Every figure can be measured with the least work, and is a number; how large it is, only a quiet machine can say."""

from __future__ import annotations

import json
import math

import pytest

from wrssl.registry import WEIGHTINGS
from wrssl_bench import against_torch, embedding, pool_size
from wrssl_bench.report import Key, known_keys, left_out
from wrssl_bench.timing import Figure

AT_MOST = {
    "wr_over_base_vat": 1.10,
    "wr_over_base_pl": 1.15,
    "wr_over_base_pi": 1.15,
    "wr_over_base_mt": 1.15,
    "wr_over_base_network": 3.5,
    "onestep_over_base_network": 2.2,
    "wr_over_base_network_L1": None,
    "wbn_over_bn": 1.25,
    "step_time_1e7_over_1e4": 1.10,
    "step_memory_1e7_over_1e4": 1.10,
    "bytes_per_member": 24,
    "import_seconds_over_torch": 1.15,
    "help_seconds": 0.5,
    "photos_end_to_end_seconds": 60,
    "photos_again_seconds": 15,
}
AT_LEAST = {"naive_over_ours_vat": 2.0, "embed_over_onnxruntime": 0.85, "embed_over_torch_eager": 3.0}


@pytest.fixture
def no_processes(monkeypatch):
    """What would run in a process of its own: memory is watched here, and everything else prints nothing at once."""

    def here(*arguments):
        return json.dumps(pool_size.watch(*map(int, arguments[2:]))) if arguments[1] == "wrssl_bench.pool_size" else ""

    monkeypatch.setattr(pool_size, "output_of", here)
    monkeypatch.setattr(against_torch, "output_of", here)
    monkeypatch.setattr(embedding, "output_of", here)
    yield
    pool_size._probes.cache_clear()
    embedding.whole_runs.cache_clear()


@pytest.mark.usefixtures("no_processes", "global_rng_untouched")
@pytest.mark.parametrize("name", list(known_keys()))
def test_every_key_gives_a_number(name, tiny):
    figure = known_keys()[name].measure(tiny)
    for value in (figure.median, figure.spread, *figure.details.values()):
        assert math.isfinite(value)
        assert value >= 0
    assert figure.median > 0 or name == "bytes_per_member"  # so small a pool drowns in what the allocator does


def test_bounds():
    known = known_keys()
    assert {name: known[name].at_most for name in AT_MOST if name in known} == {
        name: bound for name, bound in AT_MOST.items() if name in known
    }
    assert {name: known[name].at_least for name in AT_LEAST if name in known} == {
        name: bound for name, bound in AT_LEAST.items() if name in known
    }
    assert known["naive_over_ours_vat"].bound() == "≥ 2"


@pytest.mark.parametrize(
    ("bounds", "median", "holds"),
    [
        ({"at_most": 1.1}, 1.1, True),
        ({"at_most": 1.1}, 1.11, False),
        ({"at_least": 2.0}, 2.0, True),
        ({"at_least": 2.0}, 1.9, False),
        ({}, 7.0, None),
    ],
)
def test_a_bound_holds_or_not(bounds, median, holds):
    assert Key("k", lambda effort: Figure(median, 0.0), "", **bounds).holds(Figure(median, 0.0)) is holds


def test_a_key_whose_weighting_is_missing_is_left_out(monkeypatch):
    monkeypatch.setattr(WEIGHTINGS, "names", list)
    assert not {"l2rw_over_base", "mwn_over_base", "ds3l_over_base", "wrdefault_over_base_vat"} & set(known_keys())
    monkeypatch.setattr(WEIGHTINGS, "names", lambda: ["ds3l"])
    assert "ds3l_over_base" in known_keys()
    assert left_out()["mwn_over_base"] == "the weighting mwn"
