"""k-means over a pool: blobs found, reproducible, exact assignment, far from the origin."""

from __future__ import annotations

import pytest
import torch

from wrssl.weighting.kmeans import kmeans, nearest, sample_rows, smallest_type


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
    assert found.dtype == torch.uint8
    assert found.shape == (300,)
    assert same_partition(found, corner)


def test_a_seed_gives_the_same_clusters_again():
    rows = randn(500, 6, seed=1)
    assert torch.equal(kmeans(rows, 12, 5), kmeans(rows.clone(), 12, 5))
    assert not torch.equal(kmeans(rows, 12, 5), kmeans(rows, 12, 6))


@pytest.mark.parametrize("cells", [1, 50, 1 << 25])
def test_nearest_equals_brute_force(cells):
    rows, centers = randn(50, 4, seed=2), randn(6, 4, seed=3)
    distance = (rows.unsqueeze(1) - centers).square().sum(2)
    assert torch.equal(nearest(rows, centers, cells).long(), distance.argmin(1))


@pytest.mark.parametrize(
    ("clusters", "kind"),
    [(1, "uint8"), (256, "uint8"), (257, "int16"), (2**15, "int16"), (2**15 + 1, "int32")],
)
def test_numbers_take_no_more_bytes_than_they_need(clusters, kind):
    assert smallest_type(clusters) == getattr(torch, kind)
    assert torch.tensor(clusters - 1, dtype=smallest_type(clusters)).item() == clusters - 1


@pytest.mark.parametrize("clusters", [256, 300])
def test_the_last_number_is_as_good_as_the_first(clusters):
    rows = torch.arange(float(clusters)).unsqueeze(1)
    assert nearest(rows, rows).tolist() == list(range(clusters))


@pytest.mark.parametrize(("size", "count"), [(10, 3), (1000, 1000), (5, 20)])
def test_a_sample_has_different_rows(size, count):
    drawn = [sample_rows(size, count, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    for rows in drawn:
        assert rows.dtype == torch.int64
        assert len(rows.unique()) == len(rows) == min(size, count)
        assert 0 <= rows.min() <= rows.max() < size


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


@pytest.mark.parametrize("clusters", [1, 4])
def test_one_cluster_and_as_many_as_rows(clusters):
    found = kmeans(torch.tensor([[0.0], [1.0], [5.0], [9.0]]), clusters, 0)
    assert len(set(found.tolist())) == clusters


def test_more_clusters_than_distinct_rows():
    rows = torch.tensor([[0.0], [4.0]]).repeat(10, 1)
    assert same_partition(kmeans(rows, 5, 0), rows.squeeze(1))


def test_the_rows_stay_as_they_are():
    rows = randn(50, 3, seed=6) + 9
    before = rows.clone()
    kmeans(rows, 4, 0)
    assert torch.equal(rows, before)
