"""k-means over a pool: blobs found, reproducible, exact assignment, far from the origin, in parts."""

from __future__ import annotations

import pytest
import torch

from wrssl.weighting.kmeans import kmeans, nearest


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("dims", [2, 40])
@pytest.mark.parametrize("seed", [0, 1, 2**40 + 3])
def test_three_blobs_are_found(dims, seed, blobs):
    rows, corner = blobs(300, dims)
    found = kmeans(rows, 3, seed)
    assert found.dtype == torch.int32
    assert found.shape == (300,)
    assert same_partition(found, corner)


def test_a_seed_gives_the_same_clusters_again():
    rows = randn(500, 6, seed=1)
    assert torch.equal(kmeans(rows, 12, 5), kmeans(rows.clone(), 12, 5))
    assert not torch.equal(kmeans(rows, 12, 5), kmeans(rows, 12, 6))


@pytest.mark.parametrize("chunk", [7, 50, 65_536])
def test_nearest_equals_brute_force(chunk, monkeypatch):
    monkeypatch.setattr("wrssl.weighting.kmeans.CHUNK", chunk)
    rows, centres = randn(50, 4, seed=2), randn(6, 4, seed=3)
    distance = (rows.unsqueeze(1) - centres).square().sum(2)
    found = nearest(rows, centres)
    assert found.dtype == torch.int32
    assert torch.equal(found.long(), distance.argmin(1))


@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_far_from_the_origin_nothing_changes(offset, blobs):
    rows, corner = blobs(300)
    assert same_partition(kmeans(rows + offset, 3, 0), corner)


def test_each_row_belongs_to_the_nearest_mean():
    """The end of Lloyd's algorithm: a cluster's mean is nearer than any other's."""
    rows = randn(400, 3, seed=4) + 50
    found = kmeans(rows, 5, 0).long()
    means = torch.stack([rows[found == k].mean(0) for k in range(5)])
    wrong = (torch.cdist(rows.double(), means.double()).argmin(1) != found).float().mean()
    assert wrong < 0.02


def test_a_large_pool_is_fitted_on_a_part(monkeypatch, blobs):
    monkeypatch.setattr("wrssl.weighting.kmeans.FIT_ROWS", 60)
    monkeypatch.setattr("wrssl.weighting.kmeans.CHUNK", 128)
    rows, corner = blobs(999)
    found = kmeans(rows, 3, 0)
    assert same_partition(found, corner)
    assert torch.equal(found, kmeans(rows, 3, 0))


@pytest.mark.parametrize("clusters", [1, 4])
def test_one_cluster_and_as_many_as_rows(clusters):
    found = kmeans(torch.tensor([[0.0], [1.0], [5.0], [9.0]]), clusters, 0)
    assert len(set(found.tolist())) == clusters


def test_more_clusters_than_distinct_rows():
    rows = torch.tensor([[0.0], [4.0]]).repeat(10, 1)
    assert same_partition(kmeans(rows, 5, 0), rows.squeeze(1))


def test_more_clusters_than_the_part_that_is_fitted(monkeypatch):
    monkeypatch.setattr("wrssl.weighting.kmeans.FIT_ROWS", 20)
    found = kmeans(randn(100, 2, seed=5), 30, 0)
    assert found.shape == (100,)
    assert found.max() < 30


def test_the_rows_stay_as_they_are():
    rows = randn(50, 3, seed=6) + 9
    before = rows.clone()
    kmeans(rows, 4, 0)
    assert torch.equal(rows, before)
