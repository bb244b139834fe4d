"""The cache of rows: what was stored is found again, whole or not at all."""

from __future__ import annotations

import os

import numpy as np
import pytest

from wrssl.api import DataError
from wrssl.embedding import cache as module
from wrssl.embedding.cache import (
    RowCache,
    as_halves,
    as_keys,
    empty_rows,
    entries,
    keep_within,
    open_segment,
    write_segment,
)

DIM = 5


def keys_of(numbers):
    return as_keys([int(n).to_bytes(16, "big") for n in numbers])


def rows_of(numbers):
    return np.arange(DIM, dtype=np.float32) + 10 * np.asarray(numbers, np.float32)[:, None]


def test_rows_are_found_by_key_in_any_order(tmp_path):
    store = RowCache(tmp_path / "a", DIM)
    store.add(keys_of([5, 1, 0]), rows_of([5, 1, 0]))
    store.add(keys_of([256, 7]), rows_of([256, 7]))
    asked = [7, 0, 256, 5, 1, 0]
    assert np.array_equal(store.take(store.places(keys_of(asked))), rows_of(asked).astype(np.float16))
    again = RowCache(tmp_path / "a", DIM)
    assert np.array_equal(again.take(again.places(keys_of(asked))), rows_of(asked).astype(np.float16))


def test_a_key_that_is_missing_has_no_place(tmp_path):
    store = RowCache(tmp_path, DIM)
    assert store.places(keys_of([1])).tolist() == [-1]
    store.add(keys_of([1, 3]), rows_of([1, 3]))
    assert (store.places(keys_of([0, 1, 2, 3, 4])) >= 0).tolist() == [False, True, False, True, False]


def test_keys_that_end_with_zeros_are_told_apart(tmp_path):
    one, two = b"\x01" + bytes(15), b"\x01" + bytes(14) + b"\x01"
    store = RowCache(tmp_path, DIM)
    store.add(as_keys([two, one]), rows_of([2, 1]))
    assert store.take(store.places(as_keys([one, two])))[:, 0].tolist() == [10, 20]


def test_a_whole_segment_in_its_order_is_not_copied(tmp_path):
    store = RowCache(tmp_path, DIM)
    store.add(keys_of(range(9)), rows_of(range(9)))
    taken = store.take(store.places(keys_of(range(9))))
    assert isinstance(taken, np.memmap)
    assert not taken.flags.writeable


@pytest.mark.parametrize("damage", ["cut", "longer", "changed", "empty", "magic"])
def test_a_damaged_segment_is_as_if_it_were_missing(tmp_path, damage):
    path = write_segment(tmp_path, keys_of([1, 2]), as_halves(rows_of([1, 2])))
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[:-1]
    elif damage == "longer":
        data += b"\0"
    elif damage == "changed":
        data[-3] ^= 1
    elif damage == "empty":
        data = bytearray()
    else:
        data[0] ^= 1
    assert open_segment(path, DIM) is not None
    path.write_bytes(data)
    assert open_segment(path, DIM) is None
    assert RowCache(tmp_path, DIM).places(keys_of([1])).tolist() == [-1]


def test_a_segment_of_another_width_is_not_read(tmp_path):
    path = write_segment(tmp_path, keys_of([1]), as_halves(rows_of([1])))
    assert open_segment(path, DIM + 1) is None


def test_a_disk_that_refuses_keeps_the_rows_in_memory(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    store = RowCache(tmp_path / "a", DIM)
    store.add(keys_of([3]), rows_of([3]))
    assert store.trouble == "No space left on device"
    assert store.take(store.places(keys_of([3])))[0, 0] == 30
    assert not list((tmp_path / "a").iterdir())


def test_many_small_segments_become_one(tmp_path):
    store = RowCache(tmp_path, DIM)
    for n in range(module.MANY + 2):
        store.add(keys_of([n, n + 1]), rows_of([n, n + 1]))  # neighbors share a key
    store.merge()
    (only,) = tmp_path.glob("*.rows")
    assert len(open_segment(only, DIM).keys) == module.MANY + 3
    again, asked = RowCache(tmp_path, DIM), list(range(module.MANY + 3))
    assert np.array_equal(again.take(again.places(keys_of(asked))), rows_of(asked).astype(np.float16))


def test_merging_reads_no_segment_again(tmp_path, monkeypatch):
    store = RowCache(tmp_path, DIM)
    store.add(keys_of([1, 2]), rows_of([1, 2]))
    monkeypatch.setattr(module, "open_segment", lambda *_: pytest.fail("read again"))
    store.merge()
    assert len(list(tmp_path.glob("*.rows"))) == 1


def test_values_beyond_half_precision_are_an_error():
    with pytest.raises(DataError, match="scale its output"):
        as_halves(np.array([[1e6]], np.float32))
    with pytest.raises(DataError, match="not finite"):
        as_halves(np.array([[np.nan]], np.float32))


def test_large_tables_are_in_a_file_without_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", 10)
    table = empty_rows(100, DIM, tmp_path)
    table[7] = 3
    assert isinstance(table, np.memmap)
    assert table[7].tolist() == [3] * DIM
    assert not list(tmp_path.iterdir())


def test_the_oldest_segments_go_first(tmp_path):
    paths = []
    for n in range(3):
        folder = tmp_path / "embeddings" / f"e{n}" / "view-0"
        paths.append(write_segment(folder, keys_of([n]), as_halves(rows_of([n]))))
        os.utime(paths[-1], (1000 + n, 1000 + n))
    size = paths[0].stat().st_size
    assert keep_within(tmp_path, 2 * size) == 1
    assert [path.exists() for path in paths] == [False, True, True]
    assert keep_within(tmp_path, 2 * size) == 0


def test_the_list_names_embedders_and_sizes(tmp_path):
    path = write_segment(tmp_path / "embeddings" / "lite0-x" / "view-0", keys_of([1]), as_halves(rows_of([1])))
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "n.onnx").write_bytes(b"123")
    found = {entry.what: (entry.files, entry.size) for entry in entries(tmp_path)}
    assert found == {"rows of lite0-x": (1, path.stat().st_size), "networks": (1, 3)}


def test_the_limit_is_a_number_of_gigabytes(monkeypatch):
    monkeypatch.setenv("WRSSL_CACHE_LIMIT", "0.5")
    assert module.limit() == 1 << 29
    monkeypatch.setenv("WRSSL_CACHE_LIMIT", "much")
    with pytest.raises(DataError, match="number of gigabytes"):
        module.limit()
