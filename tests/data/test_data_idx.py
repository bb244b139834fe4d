from __future__ import annotations

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from wrssl.data.readers.idx import read_idx
from wrssl.errors import DataError


@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_type_of_the_format_comes_back(tmp_path, to_idx, kind, packed):
    array = (np.arange(24).reshape(2, 3, 4) - (0 if kind == "u1" else 12)).astype(kind)
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(to_idx(array)) if packed else to_idx(array))
    got = read_idx(path)
    assert got.dtype == np.dtype(kind)
    assert np.array_equal(got, array)


@pytest.mark.parametrize("magic", [b"", b"\0\0\x08", b"\0\1\x08\1", b"\0\0\x07\1", b"\0\0\x08\0", b"PNG!"])
def test_wrong_magic(tmp_path, magic):
    (tmp_path / "x").write_bytes(magic + b"\0" * (0 if len(magic) < 4 else 20))
    with pytest.raises(DataError, match=r"no idx file.*fetch it again"):
        read_idx(tmp_path / "x")


def test_header_cut_off(tmp_path):
    (tmp_path / "x").write_bytes(b"\0\0\x08\3" + b"\0" * 5)
    with pytest.raises(DataError, match="ends inside its header"):
        read_idx(tmp_path / "x")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("change", [-1, 1])
def test_length_must_be_what_the_header_claims(tmp_path, to_idx, packed, change):
    data = to_idx(np.zeros((5, 4), np.uint8))
    data = data[:-1] if change < 0 else data + b"\0"
    (tmp_path / "x").write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(DataError, match=r"claims the shape \(5, 4\)"):
        read_idx(tmp_path / "x")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("sides", [(10**6, 10**6), (30_000, 30_000)])
def test_a_header_that_claims_too_much_allocates_nothing(tmp_path, packed, sides):
    data = b"\0\0\x08\2" + struct.pack(">2I", *sides) + b"abc"
    (tmp_path / "x").write_bytes(gzip.compress(data) if packed else data)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="claims the shape"):
            read_idx(tmp_path / "x")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_a_gzip_file_that_honestly_claims_too_much_is_not_even_begun(tmp_path):
    (tmp_path / "x").write_bytes(gzip.compress(b"\0\0\x08\2" + struct.pack(">2I", 10**6, 10**6) + b"abc"))
    with pytest.raises(DataError, match="more than this reader takes"):
        read_idx(tmp_path / "x")


def test_a_gzip_bomb_is_unpacked_no_further_than_the_header_claims(tmp_path, to_idx):
    bomb = gzip.compress(to_idx(np.zeros((2, 2), np.uint8)) + bytes(64 << 20))
    (tmp_path / "x.gz").write_bytes(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="holds more"):
            read_idx(tmp_path / "x.gz")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_damaged_gzip_and_missing_file(tmp_path, to_idx):
    packed = gzip.compress(to_idx(np.arange(1000, dtype=np.int32)))
    (tmp_path / "cut").write_bytes(packed[:-30])
    (tmp_path / "bent").write_bytes(packed[:40] + b"\xff\xff\xff" + packed[43:])
    for name in ("cut", "bent"):
        with pytest.raises(DataError, match="damaged gzip"):
            read_idx(tmp_path / name)
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(tmp_path / "nothing")
