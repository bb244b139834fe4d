"""An embedding that the user gives: any array, converted part by part."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.api import DataError
from wrssl.registry import WEIGHTINGS
from wrssl.weighting.given import GivenRows

VALUES = np.arange(24).reshape(4, 2, 3)


@pytest.mark.parametrize("form", ["int", "float64", "float16", "float32", "tensor", "list", "reversed", "bool"])
def test_rows_are_flat_float32(form):
    array = {
        "int": VALUES,
        "float64": VALUES.astype(np.float64),
        "float16": VALUES.astype(np.float16),
        "float32": VALUES.astype(np.float32),
        "tensor": torch.from_numpy(VALUES).float().requires_grad_(),
        "list": VALUES.tolist(),
        "reversed": VALUES[::-1].copy()[::-1],
        "bool": VALUES % 2 == 1,
    }[form]
    want = torch.from_numpy(VALUES % 2 if form == "bool" else VALUES).float().reshape(4, 6)
    rows = GivenRows(array)
    assert len(rows) == 4
    for part in (slice(None), slice(1, 3), slice(2, 99), torch.tensor([3, 0, 3])):
        assert rows[part].dtype == torch.float32
        assert torch.equal(rows[part], want[part])


def test_one_number_per_member_and_a_single_number():
    assert GivenRows(np.arange(5.0))[1:3].tolist() == [[1.0], [2.0]]
    assert GivenRows(7)[:].tolist() == [[7.0]]


def test_what_is_read_is_a_copy():
    array = np.zeros((3, 2), dtype=np.float32)
    GivenRows(array)[:].add_(1)
    assert not array.any()


def test_words_are_a_sentence():
    with pytest.raises(DataError, match="type <U1; give an array of real numbers"):
        GivenRows(np.array(["a", "b"]))


def test_a_memory_map_is_clustered_where_it_lies(tmp_path, make_pool, blobs):
    """Read-only and in float64: no warning of torch, no whole copy."""
    rows, corner = blobs(30)
    np.save(tmp_path / "rows.npy", rows.double().numpy())
    given = np.load(tmp_path / "rows.npy", mmap_mode="r")
    weighting = WEIGHTINGS.create("wr-cluster", {"K": 3, "embedding": given})
    weighting.setup(make_pool())
    assert np.shares_memory(GivenRows(given).values, given)
    pairs = set(zip(weighting.clusters().tolist(), corner.tolist(), strict=True))
    assert len(pairs) == 3
