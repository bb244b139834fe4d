"""Named random streams: which numbers they give is a format, since a resumed or repeated run needs the same ones."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import torch

from wrssl.data import check_seed, numpy_stream, stream_seed, torch_stream
from wrssl.errors import OptionError


def test_a_stream_is_a_function_of_seed_and_name(global_rng_untouched):
    assert numpy_stream(1, "a").random() == numpy_stream(1, "a").random()
    assert len({numpy_stream(seed, name).random() for seed in (0, 1) for name in "ab"}) == 4
    expected = np.random.default_rng(np.random.SeedSequence([3, zlib.crc32(b"pool order")])).random(4)
    assert np.array_equal(numpy_stream(3, "pool order").random(4), expected)


def test_a_stream_of_torch_depends_on_the_step_too(global_rng_untouched):
    seeds = {stream_seed(seed, name, step) for seed in (0, 1) for name in "ab" for step in (0, 1)}
    assert len(seeds) == 8
    assert all(0 <= seed < 1 << 63 for seed in seeds)
    sequence = np.random.SeedSequence([3, zlib.crc32(b"augment"), 7])
    assert stream_seed(3, "augment", 7) == int(sequence.generate_state(1, np.uint64)[0]) >> 1
    expected = torch.rand(4, generator=torch.Generator().manual_seed(stream_seed(3, "augment", 7)))
    assert torch.equal(torch.rand(4, generator=torch_stream(3, "augment", 7)), expected)
    assert stream_seed(3, "augment") == stream_seed(3, "augment", 0)


def test_the_numbers_are_those_of_earlier_versions():
    assert stream_seed(0, "unlabelled order") == 4789068326338723822
    assert numpy_stream(0, "pool order").integers(1000, size=4).tolist() == [476, 274, 201, 272]


@pytest.mark.parametrize("seed", [-1, 0.5, "0", True, None])
def test_seeds_that_are_none(seed):
    for call in (check_seed, lambda seed: numpy_stream(seed, "a"), lambda seed: torch_stream(seed, "a")):
        with pytest.raises(OptionError, match="seed must be"):
            call(seed)
    assert type(check_seed(np.int64(5))) is int
