"""k-means over a pool that is read in parts: the same clusters, as good as those of the whole, in little memory."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from wrssl.api import DataError
from wrssl.weighting.kmeans import kmeans, sample_rows


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


class Lazy:
    """Rows that are computed when they are asked for; remembers how many at once."""

    def __init__(self, rows):
        self.rows, self.asked = rows, []

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, rows):
        part = self.rows[rows].clone()
        self.asked.append(len(part))
        return part


sampled = partial(kmeans, fit_rows=300, chunk=64)  # a pool of more than 300 rows is read in parts of 64


@pytest.mark.parametrize("clusters", [1, 2, 20, 300])
@pytest.mark.parametrize("dims", [1, 5, 64])
def test_the_clusters_do_not_depend_on_the_size_of_the_parts(clusters, dims):
    rows = randn(2_111, dims, seed=1) + 4
    found = []
    for chunk in (7, 64, 333, 2_111, 10_000):
        found.append(sampled(Lazy(rows), clusters, 0, chunk=chunk))
    assert all(torch.equal(found[0], other) for other in found[1:])
    assert torch.equal(found[0], sampled(rows, clusters, 0)), "a tensor is read like anything else"


def test_a_pool_as_large_as_the_sample_is_read_once_and_as_a_whole():
    for size, asked in ((299, [299]), (300, [300]), (301, [300, 64, 64, 64, 64, 45])):
        lazy = Lazy(randn(size, 4, seed=2))
        sampled(lazy, 5, 0)
        assert lazy.asked == asked


def test_in_parts_every_row_goes_to_the_nearest_center():
    """Brute force in float64, with the centers that scikit-learn finds in the sample, around its mean."""
    rows = randn(1_000, 6, seed=3) + 20
    sample = rows[sample_rows(1_000, 300, torch.Generator().manual_seed(4))]
    origin = sample.mean(0)
    with threadpool_limits(1):
        centers = KMeans(8, n_init=3, random_state=4).fit((sample - origin).numpy()).cluster_centers_
    distance = torch.cdist(rows.double() - origin.double(), torch.as_tensor(centers, dtype=torch.float64))
    assert torch.equal(sampled(Lazy(rows), 8, 4).long(), distance.argmin(1))


def test_three_blobs_are_found_in_parts(blobs):
    rows, corner = blobs(999)
    assert same_partition(sampled(Lazy(rows + 1e4), 3, 0), corner)


def spread(rows, cluster):
    """Σ_j ‖x_j − mean of its cluster‖², in float64."""
    rows, cluster = rows.double().numpy(), cluster.numpy().astype(np.int64)
    sums, counts = np.zeros((cluster.max() + 1, rows.shape[1])), np.bincount(cluster)
    np.add.at(sums, cluster, rows)
    return np.square(rows - (sums / np.maximum(counts, 1)[:, None])[cluster]).sum()


@pytest.mark.parametrize(("clusters", "structure"), [(20, 0.0), (20, 2.0), (100, 2.0)])
def test_as_good_as_scikit_learn_on_everything(clusters, structure):
    """The pool is three times as large as the sample; the sum of squares is at most 2 % above that of a full fit."""
    centers = structure * randn(40, 16, seed=4)
    kind = torch.randint(40, (60_000,), generator=torch.Generator().manual_seed(5))
    rows = centers[kind] + randn(60_000, 16, seed=6)
    full = KMeans(clusters, n_init=3, random_state=1).fit(rows.numpy())
    found = kmeans(Lazy(rows), clusters, 0)
    assert spread(rows, found) < 1.02 * full.inertia_
    assert len(found.unique()) == clusters, "no cluster is empty"


def test_no_cluster_is_empty_where_there_are_rows_enough():
    for seed in range(10):
        assert len(sampled(randn(1_000, 3, seed=seed), 30, seed).unique()) == 30


def test_a_pool_of_copies_is_one_cluster():
    found = sampled(Lazy(randn(1, 9, seed=7).repeat(1_000, 1)), 20, 0)
    assert len(found.unique()) == 1
    assert found.max() < 20


def test_fewer_distinct_rows_than_clusters():
    kind = torch.arange(1_000) % 6
    found = sampled(Lazy(randn(6, 4, seed=8)[kind]), 20, 0)
    assert same_partition(found, kind)
    assert found.max() < 20


@pytest.mark.parametrize("constant", [0.0, 1e6, -3.5e-20])
def test_constant_features_change_nothing(constant, blobs):
    rows, corner = blobs(999)
    padded = torch.cat([rows, torch.full((999, 5), constant)], dim=1)
    assert same_partition(sampled(Lazy(padded), 3, 0), corner)


def test_more_clusters_than_rows_in_the_sample():
    found = sampled(randn(100, 2, seed=5), 30, 0, fit_rows=20)
    assert found.shape == (100,)
    assert len(found.unique()) == 20


def test_a_function_of_the_seed_whatever_the_number_of_threads():
    rows, threads = randn(4_000, 32, seed=9), torch.get_num_threads()
    first, other = sampled(rows, 20, 5), sampled(rows, 20, 6)
    try:
        torch.set_num_threads(2)
        again = sampled(Lazy(rows), 20, 5)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("row", [0, 517, 999])
def test_a_value_that_is_not_finite_is_found_outside_the_sample_too(value, row):
    rows = randn(1_000, 4, seed=10)
    rows[row, 2] = value
    with pytest.raises(DataError, match="NaN or infinite values"):
        sampled(rows, 3, 0)


SCRIPT = """
import resource, torch
from wrssl.weighting.kmeans import kmeans

class Tiled:
    base = torch.randn(10_007, 64, generator=torch.Generator().manual_seed(0))

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, rows):
        if isinstance(rows, slice):
            rows = torch.arange(*rows.indices(self.size))
        return self.base[rows % len(self.base)]

kmeans(Tiled(30_000), 20, 0)  # libraries are loaded, buffers are there
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = kmeans(Tiled(2_000_000), 20, 0)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, len(found.unique()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
def test_two_million_rows_take_less_than_a_tenth_of_their_memory():
    """The rows would be 488 MB; the result is 2 MB, the shuffled row numbers are 8 MB while the sample is drawn."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    megabytes, clusters = done.stdout.split()
    assert float(megabytes) < 48
    assert clusters == "20"
