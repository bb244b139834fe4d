from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wrssl.data import checks as module
from wrssl.data.checks import Overlap, RowTable, chunks, find_overlaps, first_occurrences, row_hashes


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("shape", [(50, 1), (50, 3), (50, 8), (50, 1, 5, 5), (50, 3, 4, 4)])
def test_hashes_depend_on_every_value_and_on_nothing_else(dtype, shape):
    rows = torch.randint(0, 255, shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    hashes = row_hashes(rows)
    assert np.array_equal(hashes, row_hashes(rows.clone()))
    assert np.array_equal(hashes[7:9], row_hashes(rows[7:9]))
    for place in range(rows[0].numel()):
        changed = rows.clone()
        changed.view(len(rows), -1)[:, place] += 1
        assert not (hashes == row_hashes(changed)).any()


def test_minus_zero_is_zero_and_order_matters():
    assert row_hashes(torch.tensor([[0.0, 1.0]])) == row_hashes(torch.tensor([[-0.0, 1.0]]))
    wide = torch.arange(16, dtype=torch.float32)[None]
    assert row_hashes(wide) != row_hashes(wide.flip(1))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.lists(st.integers(0, 6), min_size=1, max_size=30))
def test_overlaps_are_those_of_a_plain_search(first, second):
    a, b = (torch.tensor(v, dtype=torch.float32)[:, None].repeat(1, 3) for v in (first, second))
    found = find_overlaps({"a": RowTable(a)}, b).get("a")
    pairs = [(first.index(value), j) for j, value in enumerate(second) if value in first]
    assert found == (Overlap(len(pairs), pairs[0]) if pairs else None)
    assert first_occurrences(b).tolist() == [second.index(v) == j for j, v in enumerate(second)]
    assert first_occurrences(b, a).tolist() == [second.index(v) == j and v not in first for j, v in enumerate(second)]


def test_many_chunks_and_numbering(monkeypatch):
    monkeypatch.setattr(module, "chunks", lambda rows: chunks(rows, 64))
    rows = torch.arange(400, dtype=torch.float32).view(100, 4)
    table = RowTable(rows[[5, 80]])
    assert find_overlaps({"t": table, "none": RowTable(-1 - rows[:2])}, rows) == {"t": Overlap(2, (0, 5))}
    assert np.array_equal(row_hashes(rows)[80:81], row_hashes(rows[80:81]))


def test_collisions_are_told_apart_by_exact_comparison(monkeypatch):
    monkeypatch.setattr(module, "row_hashes", lambda rows: np.zeros(len(rows), dtype=np.uint64))
    rows = torch.tensor([[1.0], [2.0], [3.0], [2.0]])
    assert module.find_overlaps({"a": module.RowTable(rows)}, torch.tensor([[9.0], [3.0]])) == {"a": Overlap(1, (2, 1))}
    assert module.first_occurrences(rows).tolist() == [True, True, True, False]
    assert module.first_occurrences(rows, torch.tensor([[5.0], [3.0]])).tolist() == [True, True, False, False]


def test_chunks_cover_all_rows_once():
    rows = torch.arange(10)[:, None]
    pieces = list(chunks(rows, 24))
    assert [start for start, _ in pieces] == [0, 3, 6, 9]
    assert torch.equal(torch.cat([piece for _, piece in pieces]), rows)
    assert [len(piece) for _, piece in chunks(rows, 1)] == [1] * 10
